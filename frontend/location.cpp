#include <string>
#include <string_view>

#include <burin/trace.h>

#include "base/place.h"
#include "frontend/trace_stack.h"

namespace burin {
namespace {

struct Frame {
  std::source_location where;
  const char* function = nullptr;
  bool active = false;
};
thread_local Frame frame;      // of the outermost op or library function on this thread
thread_local std::string scope_path;

}  // namespace

namespace detail {

const std::source_location& caller_place(const std::source_location& where) { return frame.active ? frame.where : where; }

bool enter_frame(const std::source_location& where, const char* function) {
  if (frame.active) {
    // An op called by a library function belongs to that function; so does a library function called by an op.
    return false;
  }
  frame = {where, function, true};
  return true;
}
void leave_frame() { frame = {}; }

ir::Location make_location(const std::source_location& where) {
  const std::source_location& place = caller_place(where);
  ir::Location location;
  if (place.line() != 0) {
    location.file = file_of(place);
    location.line = place.line();
  }
  if (frame.active && frame.function) location.function = frame.function;
  location.scope = scope_path;
  return location;
}

std::string where_text(const std::source_location& where) { return to_string(make_location(where)); }

}  // namespace detail

named_scope::named_scope(std::string_view name) : outer_length_(scope_path.size()) {
  if (!scope_path.empty()) scope_path += '/';
  scope_path += name;
}
named_scope::~named_scope() { scope_path.resize(outer_length_); }

library_function::library_function(const char* name, const std::source_location& where)
    : outermost_(detail::enter_frame(where, name)) {}
library_function::~library_function() {
  if (outermost_) detail::leave_frame();
}

}  // namespace burin
