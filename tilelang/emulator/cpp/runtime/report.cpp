#include "report.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <set>

#include "block.h"
#include "fiber.h"
#include "grid.h"
#include "memory.h"

namespace tl::emulator {

namespace {

int file = -1;
uintptr_t library_start, library_end;
std::set<std::string> sent;
constexpr size_t most_reports = 200;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) out += ' ';
    else out += c;
  }
  return out + "\"";
}

std::string triple(Index i) {
  return "[" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + "]";
}

}  // namespace

Site Site::at_code(uintptr_t address) { return {uint32_t(address - library_start) | 0x80000000u}; }

Report::Report(const char* kind, Site place, const Fiber* fiber)
    : identity_(kind), json_("{\"kind\":" + quoted(kind)) {
  site("", place);
  if (fiber != nullptr) {
    thread("", fiber->number);
    json_ += ",\"block\":" + triple(fiber->context.block);
  }
}

Report& Report::text(const char* key, const std::string& value) {
  json_ += "," + quoted(key) + ":" + quoted(value);
  return *this;
}

Report& Report::number(const char* key, long value) {
  json_ += "," + quoted(key) + ":" + std::to_string(value);
  return *this;
}

Report& Report::site(const char* prefix, Site place) {
  identity_ += "/" + std::to_string(place.value);
  return number((std::string(prefix) + (place.is_code() ? "code" : "line")).c_str(),
                long(place.value & 0x7fffffffu));
}

Report& Report::thread(const char* prefix, int number) {
  const Fiber* fiber = block.fibers[size_t(number)];
  json_ += "," + quoted(std::string(prefix) + "thread") + ":" + triple(fiber->context.thread);
  return *this;
}

Report& Report::index(const char* key, Index value) {
  json_ += "," + quoted(key) + ":" + triple(value);
  return *this;
}

Report& Report::address(const void* place, bool is_shared) {
  const auto* at = static_cast<const unsigned char*>(place);
  const SharedPlace shared = nearest_shared(place);
  json_ += ",\"shared\":[" + std::to_string(shared.offset) + "," + std::to_string(shared.bytes) + "]";
  if (is_shared) return *this;
  json_ += ",\"tensors\":{";
  for (const Region& region : regions) {
    if (&region != &regions.front()) json_ += ",";
    json_ += quoted(region.name) + ":[" + std::to_string(at - region.start) + "," +
             std::to_string(region.bytes) + "]";
  }
  json_ += "}";
  return *this;
}

void Report::send() {
  if (sent.size() >= most_reports || !sent.insert(identity_).second) return;
  send_always();
}

void Report::send_always() {
  json_ += "}\n";
  if (write(file, json_.data(), json_.size()) < 0) perror("a report was lost");
}

void open_reports(const std::string& path) {
  file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
}

void set_library(uintptr_t start, uintptr_t end) {
  library_start = start;
  library_end = end;
}
bool in_library(uintptr_t address) { return address >= library_start && address < library_end; }

namespace {

// Whether a thread needed more than its stack: it stands below, or touched what lies under it.
bool overflowed(uintptr_t stack_pointer, const void* touched) {
  if (block.running == nullptr) return false;
  const auto start = reinterpret_cast<uintptr_t>(block.running->stack);
  const uintptr_t below = reinterpret_cast<uintptr_t>(touched) - (start - stack_guard);
  return stack_pointer - start > stack_bytes || below < stack_guard;
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
#if defined(__x86_64__)
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto code = uintptr_t(registers[REG_RIP]), stack_pointer = uintptr_t(registers[REG_RSP]);
#else
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  const auto code = uintptr_t(registers.pc), stack_pointer = uintptr_t(registers.sp);
#endif
  Report report("fault", in_library(code) ? Site::at_code(code + 1) : Site::at_line(0),
                block.running);
  report.number("signal", signal_number);
  if (signal_number == SIGSEGV || signal_number == SIGBUS) {
    if (overflowed(stack_pointer, info->si_addr)) report.number("stack", stack_bytes >> 10);
    else report.address(info->si_addr, false);
  }
  report.send();
  stop_all();
  _exit(3);
}

}  // namespace

void catch_faults() {
  static char stack[64 << 10];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(number, &action, nullptr);
}

}  // namespace tl::emulator
