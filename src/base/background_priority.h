#pragma once

namespace simile::base {

// Gives the calling thread, and the threads that it starts from now on, a lower priority than those
// that answer requests: where they want the same processor, it gets a tenth of it. For loads,
// builds and checks. Does nothing where threads have no priority of their own.
void UseBackgroundPriority();

}  // namespace simile::base
