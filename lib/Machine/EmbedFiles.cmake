# Writes C++ that holds text files:
#
#   cmake -DOUT=… -P EmbedFiles.cmake
#
# Every folder machines/ and profiles/ beside this file becomes a list of names,
# without .toml, and texts, sorted by name.
set(text "// Written by lib/Machine/EmbedFiles.cmake.\n#include \"lib/Machine/FileKeys.h\"\n")
foreach(list kMachineFiles:machines kProfileFiles:profiles)
  string(REPLACE ":" ";" list ${list})
  list(GET list 0 variable)
  list(GET list 1 folder)
  file(GLOB files ${CMAKE_CURRENT_LIST_DIR}/${folder}/*.toml)
  list(SORT files)
  string(APPEND text "\nconst std::vector<fsdp::BuiltInFile> fsdp::${variable} = {\n")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WLE)
    # Brackets and semicolons are text here, so nothing turns it into a list.
    file(READ ${file} contents)
    string(APPEND text "    {\"${name}\", R\"toml(" "${contents}" ")toml\"},\n")
  endforeach()
  string(APPEND text "};\n")
endforeach()
file(WRITE ${OUT} "${text}")
