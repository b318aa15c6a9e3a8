#pragma once

#include "cli/answer.h"

namespace simile::cli {

// An answer about films: one query, two hits with title, year and genres.
Answer FilmAnswer();

}  // namespace simile::cli
