//===- PickleTest.cpp - Pickles are read and never run --------------------===//
#include "runtime/checkpoint/dcp/Pickle.h"
#include "TemporaryFolder.h"
#include "runtime/checkpoint/dcp/PickleWriter.h"

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::test;
using namespace std::string_literals;

using Kind = PickleValue::Kind;

namespace {

const std::vector<std::string_view> kAllowed = {"torch.Size",
                                                "collections.OrderedDict"};

std::string refusalOf(const std::string &bytes) {
  return messageOf([&] { Pickle(bytes, "x.pkl", kAllowed); });
}

std::string repeated(const std::string &text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i)
    result += text;
  return result;
}

struct Refused {
  const char *what;
  std::string bytes, message;
};

} // namespace

TEST(Pickle, ReadsWhatItWrites) {
  PickleWriter out;
  out.emptyDict().mark();
  out.text("n").integer(-1).text("big").integer(int64_t{1} << 40);
  out.text("x").number(0.25).text("t").boolean(true).text("none").none();
  out.text("s").size({3, 300, 70000});
  out.text("l").emptyList().mark().text("n").text("n").appends().setItems();
  std::string bytes = out.finish();
  Pickle pickle(bytes, "x.pkl", kAllowed);
  const PickleValue &root = pickle.root();
  EXPECT_EQ(root.find("n")->integer, -1);
  EXPECT_EQ(root.find("big")->integer, int64_t{1} << 40);
  EXPECT_EQ(root.find("x")->number, 0.25);
  EXPECT_EQ(root.find("t")->kind, Kind::Bool);
  EXPECT_EQ(root.find("none")->kind, Kind::None);
  EXPECT_EQ(root.find("absent"), nullptr);
  const PickleValue &size = *root.find("s");
  ASSERT_TRUE(size.isObjectOf("torch.Size"));
  const PickleValue &sizes = *size.items[1]->items[0];
  ASSERT_EQ(sizes.items.size(), 3u);
  EXPECT_EQ(sizes.items[2]->integer, 70000);
  // Written once and remembered.
  EXPECT_EQ(root.find("l")->items[0], root.find("l")->items[1]);
}

TEST(Pickle, ReadsFramesSetsBytesAndLongs) {
  // As pickle.dumps([b"ab", {1}, frozenset((2,)), -2**33, "é"], 4) writes it.
  std::string bytes = "\x80\x04\x95\x2d\0\0\0\0\0\0\0]\x94(C\x02"
                      "ab\x94\x8f\x94(K\x01\x90(K\x02\x91\x94\x8a\x05\0\0\0\0"
                      "\xfe\x8c\x02\xc3\xa9\x94"
                      "e."s;
  bytes[3] = static_cast<char>(bytes.size() - 11);
  Pickle pickle(bytes, "x.pkl", {});
  const PickleValue &root = pickle.root();
  ASSERT_EQ(root.items.size(), 5u);
  EXPECT_EQ(root.items[0]->text, "ab");
  EXPECT_EQ(root.items[1]->items[0]->integer, 1);
  EXPECT_EQ(root.items[2]->kind, Kind::Set);
  EXPECT_EQ(root.items[3]->integer, -(int64_t{1} << 33));
  EXPECT_EQ(root.items[4]->text, "\xc3\xa9");
}

TEST(Pickle, KeepsStateAndEntriesOfObjects) {
  PickleWriter out;
  out.newObject("collections", "OrderedDict").mark().text("a").integer(1);
  out.setItems().mark().text("b").integer(2).setItems();
  out.emptyDict().mark().text("k").integer(7).setItems().build();
  std::string bytes = out.finish();
  Pickle pickle(bytes, "x.pkl", kAllowed);
  ASSERT_TRUE(pickle.root().isObjectOf("collections.OrderedDict"));
  EXPECT_EQ(pickle.root().entries->find("b")->integer, 2);
  EXPECT_EQ(pickle.root().find("k")->integer, 7);
}

TEST(Pickle, RefusesWhatWouldRunSomething) {
  const std::string nothing = "nothing of it was run";
  const Refused cases[] = {
      {"os.system", "\x80\x02"s + "cos\nsystem\nX\x04\0\0\0trueq\x01\x85R."s,
       "GLOBAL at byte 2 names 'os.system', which is not among"},
      {"posix.system", "\x80\x02"s + "cposix\nsystem\n.", nothing},
      {"eval by STACK_GLOBAL",
       "\x80\x04\x8c\x08"s + "builtins\x8c\x04" + "eval\x93.",
       "STACK_GLOBAL at byte 18 names 'builtins.eval'"},
      {"subprocess by REDUCE", "\x80\x02"s + "csubprocess\nPopen\n]\x85R.",
       "'subprocess.Popen'"},
      {"an attribute of an allowed name",
       "\x80\x02"s + "ctorch\nSize.__init__\n.", "'torch.Size.__init__'"},
      {"a name with control characters",
       "\x80\x04\x8c\x03"s + "a\x1b[\x8c\x01" + "b\x93.", "names 'a\\x1b[.b'"},
      {"a name that is a number", "\x80\x04K\x01K\x02\x93."s,
       "has a name that is no text"},
      {"INST", "\x80\x02(ios\nsystem\n."s, "INST at byte 3 is no opcode"},
      {"OBJ", "\x80\x02("s + "ctorch\nSize\no.", "OBJ at byte 15"},
      {"a registered extension", "\x80\x02\x82\x01."s, "EXT1 at byte 2"},
      {"a persistent id as text", "\x80\x02P/etc/passwd\n."s, "PERSID"},
      {"a buffer from outside", "\x80\x05\x97."s, "NEXT_BUFFER"},
      {"a call of a call", "\x80\x02"s + "ctorch\nSize\n)R)R.",
       "calls what is no name"},
      {"a call of a text", "\x80\x02X\x01\0\0\0a)R."s, "calls what is no name"},
      {"a call without a tuple", "\x80\x02"s + "ctorch\nSize\n]R.",
       "has arguments that are no tuple"},
      {"a state for a list", "\x80\x02]}b."s, "what is no object"},
      {"two states", "\x80\x02"s + "ctorch\nSize\n)\x81}b}b.", "second time"},
  };
  for (const Refused &c : cases) {
    std::string message = refusalOf(c.bytes);
    EXPECT_NE(message.find(c.message), std::string::npos)
        << c.what << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << c.what;
  }
}

TEST(Pickle, RefusesBombs) {
  const Refused cases[] = {
      {"lists in lists",
       "\x80\x02"s + repeated("]", 100) + repeated("a", 99) + ".",
       "nests values deeper than 64"},
      {"a million tuples", "\x80\x02)"s + repeated("\x85", 1000000) + ".",
       "nests values deeper than 64"},
      {"a list in itself", "\x80\x02]q\0h\0a."s, "contain themselves"},
      {"a list in a dictionary in the list", "\x80\x02]q\0}q\1K\1h\0sa."s,
       "contain themselves"},
      {"an object in its state",
       "\x80\x02"s + "ctorch\nSize\n)\x81q\0}K\1h\0sb."s, "contain themselves"},
      {"a text of 2^63 bytes", "\x80\x04\x8d\0\0\0\0\0\0\0\x80."s,
       "BINUNICODE8 at byte 2 wants 9223372036854775808 bytes, and 1 are left"},
      {"a text of 4 GB", "\x80\x02X\xff\xff\xff\xff."s, "wants 4294967295"},
      {"bytes of 2^64", "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff."s,
       "wants 18446744073709551615"},
      {"a frame of 2^62", "\x80\x04\x95\0\0\0\0\0\0\0\x40."s, "has a frame of"},
      {"a memo of 4 G entries", "\x80\x02Nr\xff\xff\xff\xff."s,
       "LONG_BINPUT at byte 3 has the memo index 4294967295 after 0 others"},
      {"a memo of one value", "\x80\x04]" + repeated("\x94", 1000000),
       "MEMOIZE at byte 4 remembers a value for a second time"},
      {"a million marks", "\x80\x02" + repeated("(", 1000000),
       "MARK at byte 66 nests values deeper than 64"},
      {"a stack of one value", "\x80\x02]q\0"s + repeated("h\0"s, 5000000),
       "has more than 4194304 values on its stack"},
      {"fields that nobody looks for",
       "\x80\x02"s + "ctorch\nSize\n)\x81}(" + repeated("NN", 65) + "ub.",
       "BUILD at byte 149 gives an object more than 64 fields"},
      {"an integer of 2 GB", "\x80\x02\x8b\xff\xff\xff\x7f."s, "LONG4"},
      {"an integer of 80 bits",
       "\x80\x02\x8a\x0a"
       "0123456789."s,
       "more than 64 bits"},
  };
  for (const Refused &c : cases) {
    std::string message = refusalOf(c.bytes);
    EXPECT_NE(message.find(c.message), std::string::npos)
        << c.what << ": " << message;
  }
}

/// Lists of two times the list before: small here, 2^60 for who unfolds it.
TEST(Pickle, SharesWhatIsShared) {
  std::string bytes = "\x80\x02]q\0"s;
  for (char i = 0; i < 60; ++i)
    bytes += "](h"s + i + "h"s + i + "eq"s + static_cast<char>(i + 1);
  // All but the last go.
  bytes = bytes.substr(0, 2) + "(" + bytes.substr(2) + "l.";
  Pickle pickle(bytes, "x.pkl", {});
  EXPECT_EQ(pickle.root().items.size(), 61u);
}

TEST(Pickle, RefusesDamage) {
  const Refused cases[] = {
      {"nothing", "", "end at byte 0 is not how a pickle"},
      {"text", "hello", "is not how a pickle of protocol 2"},
      {"protocol 0", "(lp0\n.", "is not how a pickle"},
      {"protocol 1", "\x80\x01N.", "says protocol 1"},
      {"protocol 6", "\x80\x06N.", "says protocol 6"},
      {"no end", "\x80\x02N", "end at byte 3 wants 1 bytes, and 0 are left"},
      {"more behind", "\x80\x02N.N.", "is followed by 2 bytes"},
      {"no value", "\x80\x02.", "takes from an empty stack"},
      {"two values", "\x80\x02NN.", "leaves values on its stack"},
      {"a mark left", "\x80\x02(N.", "leaves values on its stack"},
      {"no mark", "\x80\x02Nt.", "TUPLE at byte 3 has no mark"},
      {"too few values", "\x80\x02N\x86.", "takes from an empty stack"},
      {"values before a mark", "\x80\x02N(a.", "takes from an empty stack"},
      {"a memo that nothing set", "\x80\x02h\x05.",
       "BINGET at byte 2 asks for memo 5, which nothing set"},
      {"a key without value", "\x80\x02}(Nu.", "key without a value"},
      {"an entry of a list", "\x80\x02](NNu.", "what is no dictionary"},
      {"an item of a dictionary", "\x80\x02}Na.", "what is no list or set"},
      {"an opcode of protocol 0", "\x80\x02I1\n.", "0x49 at byte 2"},
      {"another protocol in between", "\x80\x02\x80\x02N.", "PROTO at byte 2"},
      {"a name without end",
       "\x80\x02"
       "ctorch\nSize",
       "a name without end"},
      {"half a number", "\x80\x02J\x01\x02", "wants 4 bytes, and 2 are left"},
      {"half a float", "\x80\x02G\x01\x02", "wants 8 bytes"},
  };
  for (const Refused &c : cases) {
    std::string message = refusalOf(c.bytes);
    EXPECT_EQ(message.rfind("x.pkl: damaged or foreign pickle: ", 0), 0u)
        << c.what << ": " << message;
    EXPECT_NE(message.find(c.message), std::string::npos)
        << c.what << ": " << message;
  }
}
