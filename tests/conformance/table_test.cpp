// README.md of this folder against the tests that there are.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/conformance/cases.h"

namespace burin::conformance {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// What stands between backticks in the last column of a table's rows.
std::set<std::string> names_in_table() {
  std::set<std::string> names;
  std::istringstream lines(text_of("tests/conformance/README.md"));
  const std::regex quoted("`([^`]+)`");
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != '|') continue;
    const std::string last = line.substr(line.rfind('|', line.size() - 2));
    for (std::sregex_iterator it(last.begin(), last.end(), quoted), end; it != end; ++it)
      if ((*it)[1].str().find_first_of("./") != std::string::npos) names.insert((*it)[1]);
  }
  return names;
}

std::set<std::string> tests_here() {
  std::set<std::string> names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    const std::string name = suite.name();
    if (name == "Table" || name.find('/') != std::string::npos) continue;
    for (int j = 0; j < suite.total_test_count(); ++j) names.insert(name + "." + suite.GetTestInfo(j)->name());
  }
  for (const Case& c : cases()) names.insert("Cases/" + c.name);
  return names;
}

// "room: Suite.Name" is a test in the sources of tests/room.
bool is_test_of_room(const std::string& name) {
  const std::size_t colon = name.find(": "), dot = name.find('.');
  if (colon == std::string::npos || dot == std::string::npos) return false;
  const std::string wanted = "(" + name.substr(colon + 2, dot - colon - 2) + ", " + name.substr(dot + 1) + ")";
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/" + name.substr(0, colon)))
    if (entry.path().extension() == ".cpp" && text_of(entry.path()).find(wanted) != std::string::npos) return true;
  return false;
}

TEST(Table, NamesTestsThatExist) {
  const std::set<std::string> here = tests_here();
  for (const std::string& name : names_in_table())
    EXPECT_TRUE(here.contains(name) || is_test_of_room(name) || is_test_of_room("conformance: " + name))
        << name;  // some need machine code
}

TEST(Table, NamesEveryTest) {
  const std::set<std::string> named = names_in_table();
  EXPECT_GT(named.size(), 100u);
  for (const std::string& name : tests_here())
    EXPECT_TRUE(named.contains(name)) << name << " is in no row of tests/conformance/README.md";
}

}  // namespace
}  // namespace burin::conformance
