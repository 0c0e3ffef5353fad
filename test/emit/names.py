"""A model whose parameters and modules are called what C++, its headers, the
runtime or the generated code also use, and what is no identifier."""

NAMES = """at Ptr main fsdp std errno NULL stdin stdout memcpy time int assert EOF
INFINITY M_PI M_PI_2 linux unix signed I major base buffers c event i row col
rows cols begin end first args gpu math widen toBF16 in0 out0 t sum max gemm
launch record wait copy collective run_train k_mul gemms artifact manifest
linear programs blockIdx __global__ __LINE__ _Bool Context Stream DType""".split()
NAMES += ["a.b", "a_b", "a b", "a__b", "M.PI", "M_PI.2", "0", "9.lives", "_", "é",
          "x, y", 'end)json', 'say "', "back\\\\slash\\\\", "#error"]

DECLARATION = 'nn.parameter @"{0}" : tensor<4x4xf32> init #nn.normal<std = 0.02, cut = 3.0>'
MODULE = '{{nn.module = "{0}"}}'
READ = f'  %w{{1}} = nn.read @"{{0}}" {MODULE} : tensor<4x4xf32>'
LINEAR = (f'  %y{{1}} = nn.linear %x{{1}}, %w{{1}} {MODULE} :'
          ' tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>')
ADD = f'  %x{{2}} = nn.add %y{{1}}, %w{{1}} {MODULE} : tensor<4x4xf32>'


def escaped(name):
    return name.replace('"', '\\22')


print("\n".join(DECLARATION.format(escaped(name)) for name in NAMES))
print('func.func @forward(%x0: tensor<4x4xf32> {nn.name = "input"})'
      ' -> (tensor<f32> {nn.name = "loss"}) {')
for i, name in enumerate(NAMES):
    for line in (READ, LINEAR, ADD):
        print(line.format(escaped(name), i, i + 1))
print(f"  %loss = nn.sum %x{len(NAMES)} [0, 1] : tensor<4x4xf32> to tensor<f32>")
print("  return %loss : tensor<f32>\n}")
