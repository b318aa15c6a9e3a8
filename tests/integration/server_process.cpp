#include "integration/server_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace simile::integration {

ServerProcess::ServerProcess(const std::vector<std::string>& arguments,
                             const Circumstances& circumstances) {
  std::vector<std::string> words = {circumstances.program, "serve"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // The same strategies in every run; measures nothing and writes nothing to the home folder.
  std::vector<std::string> settings = {"SIMILE_BACKEND_TUNING=defaults"};
  settings.insert(settings.end(), circumstances.variables.begin(), circumstances.variables.end());
  std::vector<char*> variables;
  for (std::string& setting : settings) variables.push_back(setting.data());
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
  from_ = base::FileDescriptor(ends[0]);
  const base::FileDescriptor to(ends[1]);
  pid_ = fork();
  if (pid_ != 0) return;
  // In the child: only calls that are safe after fork.
  dup2(to.get(), STDOUT_FILENO);
  dup2(to.get(), STDERR_FILENO);
  if (circumstances.descriptors) {
    const rlimit descriptors{*circumstances.descriptors, *circumstances.descriptors};
    setrlimit(RLIMIT_NOFILE, &descriptors);
  }
  execve(argv[0], argv.data(), variables.data());
  _exit(127);
}

ServerProcess::~ServerProcess() {
  if (exit_) return;
  Signal(SIGKILL);
  AwaitExit();
}

bool ServerProcess::ReadMore() {
  char buffer[1024];
  const ssize_t got = read(from_.get(), buffer, sizeof buffer);
  if (got > 0) output_.append(buffer, static_cast<std::size_t>(got));
  return got > 0;
}

std::string ServerProcess::AwaitListening() {
  const std::string mark = "listening on ";
  do {
    const std::size_t place = output_.find(mark);
    const std::size_t end = output_.find_first_of(",\n", place == std::string::npos ? 0 : place);
    if (place != std::string::npos && end != std::string::npos) {
      return output_.substr(place + mark.size(), end - place - mark.size());
    }
  } while (ReadMore());
  return "";
}

bool ServerProcess::AwaitOutput(const std::string& text) {
  while (output_.find(text) == std::string::npos) {
    if (!ReadMore()) return false;
  }
  return true;
}

void ServerProcess::Signal(int signal) const { kill(pid_, signal); }

int ServerProcess::AwaitExit() {
  while (!exit_) {
    while (ReadMore()) {
    }
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) std::abort();
    exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return *exit_;
}

}  // namespace simile::integration
