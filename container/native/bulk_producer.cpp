// Puts a column of keys and a column of values into the queue of a producer of librdkafka.
//
// As in record_queue.cpp nothing is linked: bulk_producer.py passes the functions.

#include <cstddef>
#include <cstdint>

#include "arrow.h"

namespace {

using homeport::ArrowArray;

// In the order of FUNCTIONS in bulk_producer.py.
struct Librdkafka {
  void* (*topic_new)(void* client, const char* topic, void* conf);
  void (*topic_destroy)(void* topic);
  int (*produce)(void* topic, int32_t partition, int flags, void* value, size_t value_size,
                 const void* key, size_t key_size, void* opaque);
};

Librdkafka kafka;

constexpr int kCopy = 2;  // RD_KAFKA_MSG_F_COPY

struct Bytes {
  const char* data;  // nullptr: null
  size_t size;
};

// An element of a column of Arrow's type large_binary.
Bytes element(const ArrowArray* column, int64_t row) {
  const int64_t place = column->offset + row;
  const auto* valid = static_cast<const uint8_t*>(column->buffers[0]);
  if (valid != nullptr && (valid[place / 8] >> (place % 8) & 1) == 0) return {nullptr, 0};
  const auto* ends = static_cast<const int64_t*>(column->buffers[1]) + place;
  const auto* data = static_cast<const char*>(column->buffers[2]);
  const size_t size = size_t(ends[1] - ends[0]);
  return size == 0 ? Bytes{"", 0} : Bytes{data + ends[0], size};
}

}  // namespace

extern "C" {

#pragma GCC visibility push(default)

void homeport_load_producer(const Librdkafka* functions) { kafka = *functions; }

// Put the records into the queue, until it refuses one; return how many it has taken. The columns
// are released. `partition` below 0: the partitioner of the topic chooses.
int64_t homeport_produce(void* client, const char* topic, int32_t partition, ArrowArray* keys,
                         ArrowArray* values) {
  int64_t row = 0;
  void* own = kafka.topic_new(client, topic, nullptr);
  if (own != nullptr) {
    for (; row < keys->length; ++row) {
      const Bytes key = element(keys, row), value = element(values, row);
      if (kafka.produce(own, partition, kCopy, const_cast<char*>(value.data), value.size, key.data,
                        key.size, nullptr) != 0)
        break;
    }
    kafka.topic_destroy(own);
  }
  keys->release(keys);
  values->release(values);
  return row;
}

#pragma GCC visibility pop

}  // extern "C"
