//===- CalibratedShapeTest.cpp - Shapes to measure, as text ---------------===//
#include "runtime/calibrate/CalibratedShape.h"
#include "TemporaryFolder.h"

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

TEST(CalibratedShape, ReadsWhatItWrites) {
  for (const char *text :
       {"product,f32,nt,512,1536,2048", "product,bf16,tn,1,2,3",
        "attention,f32,nn,256,256,64"})
    EXPECT_EQ(textOf(readShape(text)), text);
  CalibratedShape shape = readShape("product,f32,nt,512,1536,2048");
  EXPECT_EQ(shape.kind, CalibratedShape::Product);
  EXPECT_EQ(shape.layout, Layout::NT);
  EXPECT_EQ(shape.sizes[2], 2048);
}

TEST(CalibratedShape, RefusesWhatIsNone) {
  for (const char *text :
       {"", ",", "product", "product,f32,nt,512,1536", "product,f32,nt,1,2,3,4",
        "sum,f32,nt,1,2,3", "product,f16,nt,1,2,3", "product,fp8,nt,1,2,3",
        "product,f32,xx,1,2,3", "product,f32,nt,0,2,3", "product,f32,nt,-1,2,3",
        "product,f32,nt,1x,2,3", "product,f32,nt,,2,3",
        "product,f32,nt,1,2,99999999999999999999"})
    EXPECT_EQ(messageOf([&] { readShape(text); }),
              "'" + std::string(text) +
                  "' is no shape: expected one such as product,f32,nt,8,8,8");
}
