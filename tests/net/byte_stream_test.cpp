#include "net/byte_stream.h"

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace simile::net {
namespace {

std::span<const std::uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::shared_ptr<const OutgoingMessage> MakeMessage(const std::string& text) {
  auto message = std::make_shared<OutgoingMessage>(text.size());
  std::memcpy(message->data(), text.data(), text.size());
  return message;
}

TEST(OutgoingMessageTest, StandsBehindItsPrefix) {
  const auto message = MakeMessage(std::string(0x1234, 'x'));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(message->framed()), 6),
            std::string("\0\0\0\x12\x34x", 6));
  EXPECT_EQ(message->framed_size(), 0x1234U + 5);
}

TEST(WriteQueueTest, GivesOutAllBytesInTheirOrderHoweverManyAreWritten) {
  std::mt19937 random(11);
  WriteQueue queue;
  for (int round = 0; round < 50; ++round) {
    std::string expected;
    for (int i = 0; i < 40; ++i) {
      std::string text(random() % (i % 5 == 0 ? 20'000 : 300), '\0');
      for (char& byte : text) byte = static_cast<char>(random());
      if (random() % 2 == 0) {
        queue.Add(AsBytes(text));
        expected += text;
      } else {
        const auto message = MakeMessage(text);
        const std::size_t offset = random() % (message->framed_size() + 1);
        queue.Add(message, offset, message->framed_size() - offset);
        expected.append(reinterpret_cast<const char*>(message->framed()) + offset,
                        message->framed_size() - offset);
      }
    }
    ASSERT_EQ(queue.bytes(), expected.size());
    std::string written;
    while (!queue.empty()) {
      std::array<iovec, 7> space;
      std::string front;
      for (const iovec& piece : queue.Front(space)) {
        front.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
      }
      front.resize(std::min<std::size_t>(front.size(), 1 + random() % 30'000));
      written += front;
      queue.Drop(front.size());
    }
    ASSERT_EQ(written, expected);
  }
}

TEST(WriteQueueTest, KeepsALargeMessageUntilItIsWritten) {
  auto message = MakeMessage(std::string(100'000, 'x'));
  const std::weak_ptr<const OutgoingMessage> watched = message;
  WriteQueue queue;
  queue.Add(message, 0, 60'000);
  queue.Add(message, 60'000, 40'005);
  message.reset();
  queue.Drop(100'004);
  EXPECT_FALSE(watched.expired());
  queue.Drop(1);
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace simile::net
