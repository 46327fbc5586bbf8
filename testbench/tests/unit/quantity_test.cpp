// SPDX-License-Identifier: Apache-2.0
#include "config/quantity.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace rnic::config {
namespace {

template <typename Function>
std::string reason(Function function) {
  try {
    function();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(QuantityTest, CountsAreWholeNumbers) {
  EXPECT_EQ(parse_count("0"), 0U);
  EXPECT_EQ(parse_count(" 42 "), 42U);
  EXPECT_EQ(parse_count("1e6"), 1'000'000U);
  EXPECT_EQ(parse_count("2.0"), 2U);
  EXPECT_EQ(parse_count("2.5e1"), 25U);
  EXPECT_EQ(parse_count("9223372036854775807"), 9223372036854775807ULL);  // 2^63 - 1
  EXPECT_EQ(reason([] { parse_count("2.5"); }), "is not a whole number");
  EXPECT_EQ(reason([] { parse_count("1e-1"); }), "is not a whole number");
}

TEST(QuantityTest, RefusesWhatIsNoNumber) {
  for (const char* text :
       {"x", "nan", "inf", "+5", ".", "0x10", "--5", "1,5", "5 5", "1e", "1e+"}) {
    EXPECT_NE(reason([text] { parse_count(text); }), "accepted") << text;
    EXPECT_NE(reason([text] { parse_real(text); }), "accepted") << text;
  }
  EXPECT_EQ(reason([] { parse_count(""); }), "is empty");
  EXPECT_EQ(reason([] { parse_time("  "); }), "is empty");
  EXPECT_EQ(reason([] { parse_count("-1"); }), "is negative");
  EXPECT_EQ(reason([] { parse_bytes("-4KiB"); }), "is negative");
  EXPECT_EQ(reason([] { parse_count("5x"); }), "has 'x' after the number");
}

TEST(QuantityTest, RefusesOverflow) {
  EXPECT_EQ(reason([] { parse_count("1e20"); }), "is too large");  // 2^64 is 1.8e19
  EXPECT_EQ(reason([] { parse_count("1e99999999"); }), "is out of range");
  EXPECT_EQ(reason([] { parse_count("99999999999999999999"); }), "has too many digits");
  EXPECT_EQ(reason([] { parse_bytes("17000000TiB"); }), "is too large");  // 2^64 B is 16777216 TiB
  EXPECT_EQ(reason([] { parse_time("1e7s"); }), "is too large");          // 2^63 ps is 9.2e6 s
  EXPECT_EQ(reason([] { parse_rate("1e400bps"); }), "is out of range");
}

TEST(QuantityTest, BytesKnowBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("7"), 7U);
  EXPECT_EQ(parse_bytes("7B"), 7U);
  EXPECT_EQ(parse_bytes("4KiB"), 4096U);
  EXPECT_EQ(parse_bytes("1.5 MiB"), 1'572'864U);  // 1.5 * 2^20
  EXPECT_EQ(parse_bytes("2GiB"), 2'147'483'648U);
  EXPECT_EQ(parse_bytes("4kB"), 4000U);
  EXPECT_EQ(parse_bytes("4KB"), 4000U);
  EXPECT_EQ(reason([] { parse_bytes("0.3KiB"); }), "is not a whole number of bytes");  // 307.2
  EXPECT_NE(reason([] { parse_bytes("4Kb"); }).find("unknown unit 'Kb'"), std::string::npos);
  EXPECT_NE(reason([] { parse_bytes("4ns"); }).find("KiB"), std::string::npos);
}

TEST(QuantityTest, TimesAreExactPicoseconds) {
  EXPECT_EQ(parse_time("10"), nanoseconds(10));
  EXPECT_EQ(parse_time("1.5us"), nanoseconds(1500));
  EXPECT_EQ(parse_time("250ns"), nanoseconds(250));
  EXPECT_EQ(parse_time("7ps"), picoseconds(7));
  EXPECT_EQ(parse_time("2ms"), microseconds(2000));
  EXPECT_EQ(parse_time("1s"), microseconds(1'000'000));
  EXPECT_EQ(parse_time("1.1us"), picoseconds(1'100'000));  // 1.1 has no exact double
  EXPECT_EQ(parse_time("0.0004ns"), picoseconds(0));       // 0.4 ps rounds down
  EXPECT_EQ(parse_time("0.0005ns"), picoseconds(1));       // half rounds up
  EXPECT_EQ(parse_time("0.00149ns"), picoseconds(1));      // 1.49 ps, not 1.5 after two roundings
}

TEST(QuantityTest, RatesAndFrequencies) {
  EXPECT_EQ(parse_rate("100").bits_per_second(), 100e9);
  EXPECT_EQ(parse_rate("25.78125Gbps").bits_per_second(), 25'781'250'000.0);
  EXPECT_EQ(parse_rate("100Gb/s").bits_per_second(), 100e9);
  EXPECT_EQ(parse_rate("400 Mbps").bits_per_second(), 400e6);
  EXPECT_EQ(parse_rate("0.4Tbps").bits_per_second(), 400e9);
  EXPECT_NE(reason([] { parse_rate("0"); }), "accepted");
  EXPECT_EQ(parse_frequency("0.5"), 500e6);
  EXPECT_EQ(parse_frequency("500MHz"), 500e6);
  EXPECT_NE(reason([] { parse_frequency("0"); }), "accepted");
  EXPECT_NE(reason([] { parse_frequency("1Gbps"); }), "accepted");
}

TEST(QuantityTest, BooleansAndLists) {
  for (const char* text : {"true", "on", "yes", "1"}) EXPECT_TRUE(parse_bool(text)) << text;
  for (const char* text : {"false", "off", "no", "0"}) EXPECT_FALSE(parse_bool(text)) << text;
  EXPECT_NE(reason([] { parse_bool("maybe"); }), "accepted");
  EXPECT_NE(reason([] { parse_bool(""); }), "accepted");
  EXPECT_EQ(split_list(" 5, 17 "), (std::vector<std::string>{"5", "17"}));
  EXPECT_TRUE(split_list("none").empty());
  EXPECT_NE(reason([] { split_list("5,,6"); }), "accepted");
  EXPECT_NE(reason([] { split_list("5,"); }), "accepted");
}

TEST(QuantityTest, NumbersPrintShortAndReadBack) {
  EXPECT_EQ(format_number(100), "100");
  EXPECT_EQ(format_number(0.081), "0.081");
  EXPECT_EQ(format_number(9007199254740991.0), "9007199254740991");
  EXPECT_EQ(parse_real(format_number(1.0 / 3)), 1.0 / 3);
}

}  // namespace
}  // namespace rnic::config
