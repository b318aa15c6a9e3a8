#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

#include "certificate/seeded_random.h"

namespace simile::request_mutations {

// Changes messages of any type by what their .proto file says of them: fields are set, cleared,
// copied and repeated, numbers lie at and beyond bounds, texts are words that mean something to the
// server and others that do not. And their bytes, which then need not be a message.
class MessageMutator {
 public:
  //   words  for text fields: ids, field names, filters, tokens
  MessageMutator(std::uint64_t seed, std::vector<std::string> words);

  // Makes one to four changes. `donor` is a message of the same type, parts of which may be taken.
  void Mutate(google::protobuf::Message& message, const google::protobuf::Message& donor);
  // Changes what is no longer a message, perhaps.
  void MutateBytes(std::string& bytes);
  void Learn(const std::string& word);  // of an answer: a token, an id of a snapshot

  tests::SeededRandom& random() { return random_; }

 private:
  using Field = google::protobuf::FieldDescriptor;

  void Change(google::protobuf::Message& message, const google::protobuf::Message& donor);
  void ChangeSingular(google::protobuf::Message& message, const Field& field);
  void ChangeRepeated(google::protobuf::Message& message, const Field& field);
  void Add(google::protobuf::Message& message, const Field& field);
  void AddUnknownField(google::protobuf::Message& message);
  std::uint64_t Number();
  double Real();
  std::string Text();
  std::string Bytes();
  // A message within a message, ..., `depth` times.
  std::string Nested(std::size_t depth);

  tests::SeededRandom random_;
  std::vector<std::string> words_;
  std::size_t next_learned_;  // the place of the next learned word
  std::size_t own_words_;
};

}  // namespace simile::request_mutations
