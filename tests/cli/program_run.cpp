#include "cli/program_run.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

std::string Contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the child: puts a file in place of a standard stream.
void Redirect(const std::filesystem::path& file, int flags, int descriptor) {
  const int opened = open(file.c_str(), flags, 0600);
  if (opened < 0 || dup2(opened, descriptor) < 0) _exit(127);
}

}  // namespace

ProgramRun RunProgram(const std::vector<std::string>& arguments, const std::string& input,
                      const std::vector<std::string>& environment, const std::string& program) {
  const ScratchFolder scratch;
  const std::filesystem::path& folder = scratch.path();
  scratch.Write("input", input);
  std::vector<std::string> texts{program};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment;
  const std::vector<char*> argv = Pointers(texts);
  const std::vector<char*> envp = Pointers(variables);

  const pid_t child = fork();
  if (child == 0) {
    Redirect(folder / "input", O_RDONLY, STDIN_FILENO);
    Redirect(folder / "printed", O_CREAT | O_WRONLY, STDOUT_FILENO);
    Redirect(folder / "errors", O_CREAT | O_WRONLY, STDERR_FILENO);
    execve(program.c_str(), argv.data(), envp.data());
    _exit(127);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  ProgramRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.printed = Contents(folder / "printed");
  run.errors = Contents(folder / "errors");
  return run;
}

}  // namespace simile::cli
