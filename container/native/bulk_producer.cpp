// Puts many records into the queue of a producer of librdkafka.
//
// As in record_queue.cpp nothing is linked: bulk_producer.py passes the functions.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "arrow.h"
#include "message.h"

namespace {

using homeport::ArrowArray;
using homeport::Message;

// In the order of FUNCTIONS in bulk_producer.py.
struct Librdkafka {
  void* (*topic_new)(void* client, const char* topic, void* conf);
  void (*topic_destroy)(void* topic);
  int (*last_error)();
  int (*produce_batch)(void* topic, int32_t partition, int flags, Message* records, int count);
};

// In the order of PYTHON in bulk_producer.py.
struct Python {
  void* none;
  void* (*get_item)(void* list, ssize_t index);
  int (*as_bytes)(void* object, char** data, ssize_t* size);
};

Librdkafka kafka;
Python python;

constexpr int kCopy = 2;  // RD_KAFKA_MSG_F_COPY
char empty[1];            // a null pointer would be null

struct Bytes {
  void* data;  // nullptr: null
  size_t size;
};

// An element of a column of Arrow's type large_binary; null where there is no column.
Bytes element(const ArrowArray* column, int64_t row) {
  if (column == nullptr) return {nullptr, 0};
  const int64_t place = column->offset + row;
  const auto* valid = static_cast<const uint8_t*>(column->buffers[0]);
  if (valid != nullptr && (valid[place / 8] >> (place % 8) & 1) == 0) return {nullptr, 0};
  const auto* ends = static_cast<const int64_t*>(column->buffers[1]) + place;
  auto* data = static_cast<char*>(const_cast<void*>(column->buffers[2]));
  const size_t size = size_t(ends[1] - ends[0]);
  return size == 0 ? Bytes{empty, 0} : Bytes{data + ends[0], size};
}

}  // namespace

extern "C" {

#pragma GCC visibility push(default)

void homeport_load_producer(const Librdkafka* functions, const Python* of_python) {
  kafka = *functions;
  python = *of_python;
}

// Point `records` to the bytes of a list: keys and values in turn, from the record `begin` on. The
// list keeps them. Called with Python's lock; an error is that of Python.
void homeport_point(void* list, ssize_t begin, int32_t count, Message* records) {
  for (ssize_t i = 0; i < 2 * count; ++i) {
    void* object = python.get_item(list, 2 * begin + i);
    char* data = nullptr;
    ssize_t size = 0;
    if (object == nullptr) return;
    if (object != python.none && python.as_bytes(object, &data, &size) != 0) return;
    Message& record = records[i / 2];
    (i % 2 == 0 ? record.key : record.payload) = data;
    (i % 2 == 0 ? record.key_len : record.len) = size_t(size);
  }
}

// As homeport_point, from columns.
void homeport_point_columns(const ArrowArray* keys, const ArrowArray* values, int64_t begin,
                            int32_t count, Message* records) {
  for (int32_t i = 0; i < count; ++i) {
    const Bytes key = element(keys, begin + i), value = element(values, begin + i);
    records[i].key = key.data;
    records[i].key_len = key.size;
    records[i].payload = value.data;
    records[i].len = value.size;
  }
}

void homeport_release(ArrowArray* keys, ArrowArray* values) {
  for (ArrowArray* column : {keys, values})
    if (column->release != nullptr) column->release(column);
}

// Put `records` into the queue; return how many precede the first one that it refuses, for `reason`.
// Behind one that is refused for another reason than a full queue others may be in the queue.
// `partition` below 0: the partitioner of the topic chooses.
int32_t homeport_produce(void* client, const char* topic, int32_t partition, Message* records,
                         int32_t count, int32_t* reason) {
  void* own = kafka.topic_new(client, topic, nullptr);
  if (own == nullptr) {
    *reason = kafka.last_error();
    return 0;
  }
  // One call for many: each reads the clock twice.
  kafka.produce_batch(own, partition, kCopy, records, count);
  kafka.topic_destroy(own);
  int32_t taken = 0;
  while (taken < count && records[taken].err == 0) ++taken;
  if (taken < count) *reason = records[taken].err;
  return taken;
}

#pragma GCC visibility pop

}  // extern "C"
