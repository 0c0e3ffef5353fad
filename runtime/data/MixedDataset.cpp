//===- MixedDataset.cpp - Rows of several sources -------------------------===//
#include "fsdp/Data/MixedDataset.h"
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <numeric>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

static constexpr size_t kMostDigits = 6; // before the point, and after it

/// What stands before the point and after it; "0" if there is no point.
static std::pair<std::string, std::string> digitsOf(const std::string &weight) {
  size_t point = weight.find('.');
  if (point == std::string::npos)
    return {weight, "0"};
  return {weight.substr(0, point), weight.substr(point + 1)};
}

/// Whether it is DIGITS or DIGITS.DIGITS, and above 0.
static bool isWeight(const std::string &text) {
  auto [whole, rest] = digitsOf(text);
  auto isNumber = [](const std::string &digits) {
    return !digits.empty() && digits.size() <= kMostDigits &&
           digits.find_first_not_of("0123456789") == std::string::npos;
  };
  return isNumber(whole) && isNumber(rest) &&
         text.find_first_of("123456789") != std::string::npos;
}

MixedSource fsdp::rt::parseMixedSource(const std::string &text) {
  size_t sign = text.rfind('=');
  if (sign == std::string::npos || sign == 0 ||
      !isWeight(text.substr(sign + 1)))
    throw Error("training.mixture: expected PATH=WEIGHT with a weight above 0 "
                "of at most 6 digits before the point and after it, such as "
                "prose=3 or chat=0.25, not '" +
                text + "'");
  return {text.substr(0, sign), text.substr(sign + 1)};
}

/// A weight in millionths.
static int64_t millionths(const std::string &weight) {
  auto [whole, rest] = digitsOf(weight);
  rest.resize(kMostDigits, '0');
  return std::stoll(whole + rest);
}

/// The smallest whole numbers that are to each other as the weights.
static std::vector<int64_t> sharesOf(const std::vector<std::string> &weights) {
  std::vector<int64_t> shares;
  int64_t divisor = 0;
  for (const std::string &weight : weights) {
    shares.push_back(millionths(weight));
    divisor = std::gcd(divisor, shares.back());
  }
  for (int64_t &share : shares)
    share /= divisor;
  return shares;
}

RowDeal::RowDeal(const std::vector<std::string> &weights)
    : shares(sharesOf(weights)) {
  int64_t cycle = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  if (cycle > kMostRows)
    throw Error("training.mixture: the weights come out exactly after " +
                std::to_string(cycle) + " rows, and the most is " +
                std::to_string(kMostRows) + "; take weights of fewer digits");
  std::vector<int64_t> dealt(shares.size(), 0);
  for (int64_t row = 1; row <= cycle; ++row) {
    size_t next = shares.size();
    // The next row of source s is due by row ceil((dealt + 1) cycle / share).
    int64_t soonest = cycle + 1;
    for (size_t s = 0; s < shares.size(); ++s) {
      bool isAhead = dealt[s] * cycle >= row * shares[s];
      int64_t due = ((dealt[s] + 1) * cycle + shares[s] - 1) / shares[s];
      if (!isAhead && due < soonest) {
        soonest = due;
        next = s;
      }
    }
    places.push_back({next, dealt[next]++});
  }
}

RowDeal::Place RowDeal::at(int64_t row) const {
  const Place &place = places[static_cast<size_t>(row % cycle())];
  return {place.source, row / cycle() * shares[place.source] + place.number};
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

static std::vector<std::string>
weightsOf(const std::vector<MixedDataset::Part> &parts) {
  std::vector<std::string> weights;
  for (const MixedDataset::Part &part : parts)
    weights.push_back(part.weight);
  return weights;
}

/// Ids of different tokenizers mean different texts.
static void checkTokenizers(const std::vector<MixedDataset::Part> &parts) {
  const TokenDataset *known = nullptr;
  for (const MixedDataset::Part &part : parts) {
    if (part.data->tokenizer().empty())
      continue;
    if (known && known->tokenizer() != part.data->tokenizer())
      throw Error(part.data->name() + " was made by another tokenizer than " +
                  known->name() +
                  "; tokenize all sources of training.mixture "
                  "with the model's tokenizer");
    known = part.data.get();
  }
}

MixedDataset::MixedDataset(std::vector<Part> from)
    : parts(std::move(from)), deal(weightsOf(parts)) {
  checkTokenizers(parts);
}

DataIdentity MixedDataset::identity() const {
  DataIdentity all;
  RunningChecksum sum;
  auto add = [&](const auto &number) {
    sum.add({reinterpret_cast<const char *>(&number), sizeof number});
  };
  for (size_t s = 0; s < parts.size(); ++s) {
    DataIdentity one = parts[s].data->identity();
    all.bytes += one.bytes;
    all.trainBytes += one.trainBytes;
    add(one.bytes);
    add(one.trainBytes);
    add(one.checksum);
    add(deal.share(s));
  }
  all.checksum = sum.value();
  return all;
}

bool MixedDataset::hasDocuments() const {
  return std::all_of(parts.begin(), parts.end(), [](const Part &part) {
    return part.data->hasDocuments();
  });
}

std::vector<const TokenStream *> MixedDataset::streams() const {
  std::vector<const TokenStream *> all;
  for (const Part &part : parts)
    all.push_back(part.data.get());
  return all;
}

int64_t MixedDataset::trainTokens() const {
  int64_t tokens = 0;
  for (const Part &part : parts)
    tokens += part.data->trainTokens();
  return tokens;
}

int64_t MixedDataset::heldOutTokens() const {
  int64_t tokens = 0;
  for (const Part &part : parts)
    tokens += part.data->heldOutTokens();
  return tokens;
}

Dataset::RowSource MixedDataset::sourceOfRow(int64_t row) const {
  RowDeal::Place place = deal.at(row);
  return {parts[place.source].data.get(), place.number};
}
