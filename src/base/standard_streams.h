#pragma once

namespace simile::base {

// Opens /dev/null in place of each standard stream that the program was started without (`0<&-`,
// `1>&-`, `2>&-`): a file or socket opened later would take its number and receive what is printed.
// Reading that standard input and writing to that standard output fail as before, so that lost
// output stays an error; what goes to that standard error is dropped. REQUIRES: called first in
// main.
void OpenClosedStandardStreams();

}  // namespace simile::base
