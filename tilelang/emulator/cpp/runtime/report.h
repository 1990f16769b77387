// What is told to whoever started the run: one JSON object a line, at the end of a file.
#pragma once
#include <stdint.h>

#include <string>

namespace tl::emulator {

struct Fiber;
struct Index;

// A place in the generated code: a line, or an address in the kernel's library.
struct Site {
  uint32_t value = 0;

  static Site at_line(int line) { return {uint32_t(line)}; }
  static Site at_code(uintptr_t address);
  bool is_code() const { return (value & 0x80000000u) != 0; }
  bool operator==(Site other) const { return value == other.value; }
};

// Reports of one kind about the same places are sent once.
class Report {
 public:
  Report(const char* kind, Site site, const Fiber* fiber);
  Report& text(const char* key, const std::string& value);
  Report& number(const char* key, long value);
  Report& site(const char* prefix, Site site);
  Report& thread(const char* prefix, int number);
  Report& index(const char* key, Index value);
  // How far an address is from the start of shared memory, and of each tensor: who reads the report
  // knows which of them the line is about.
  Report& address(const void* place, bool is_shared);
  void send();
  // However many there are.
  void send_always();

 private:
  std::string identity_, json_;
};

void open_reports(const std::string& path);
// For addresses in code: where the kernel's library begins and ends.
void set_library(uintptr_t start, uintptr_t end);
bool in_library(uintptr_t address);
// Reports a signal of the process that runs a block, which has no way back.
void catch_faults();

}  // namespace tl::emulator
