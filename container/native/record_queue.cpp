// Takes the records of a consumer of librdkafka into buffers of Arrow, or into objects of Python, in
// two calls per batch.
//
// Nothing is linked: record_queue.py passes the functions of Python, and of the librdkafka that
// confluent-kafka has loaded. Their types here are parts of their stable C ABIs. Only one thread at a
// time uses a queue.

#include <sys/types.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "arrow.h"
#include "message.h"
#include "utf8.h"

namespace {

using homeport::ArrowArray;
using homeport::Memory;
using homeport::Message;
using homeport::Values;
using homeport::fill;
using homeport::is_utf8;
using homeport::new_array;
using homeport::take_numbers;

struct TopicPartition {  // rd_kafka_topic_partition_t
  char* topic;
  int32_t partition;
  int64_t offset;
};

constexpr int kFetch = 2;  // RD_KAFKA_EVENT_FETCH
constexpr int kError = 8;  // RD_KAFKA_EVENT_ERROR

// In the order of FUNCTIONS in record_queue.py.
struct Librdkafka {
  void* (*opaque)(const void* client);
  void* (*queue_new)(void* client);
  void (*queue_destroy)(void* queue);
  void* (*queue_get_partition)(void* client, const char* topic, int32_t partition);
  void (*queue_forward)(void* from, void* to);
  void* (*queue_poll)(void* queue, int timeout_ms);
  int (*event_type)(const void* event);
  const Message* (*event_message_next)(void* event);
  int (*event_error)(const void* event);
  const char* (*event_error_string)(const void* event);
  TopicPartition* (*event_topic_partition)(void* event);
  void (*event_destroy)(void* event);
  void (*topic_partition_destroy)(TopicPartition*);
  int64_t (*message_timestamp)(const Message*, int* kind);
  int (*message_headers)(const Message*, void** headers);
  int (*header_get_all)(const void* headers, size_t index, const char** name, const void** value,
                        size_t* size);
  const char* (*topic_name)(const void* topic);
};

Librdkafka kafka;

// In the order of PYTHON in record_queue.py.
struct Python {
  void* (*bytes)(const char* data, ssize_t size);
  void* (*number)(long long value);
  int (*set_item)(void* list, ssize_t index, void* item);
};

Python python;

// A run of rows of one partition; `bytes` of its values. record_queue.py reads it.
struct Run {
  int32_t place;
  int32_t rows;
  int64_t bytes;
  int64_t first_offset;
  int64_t last_offset;
};

struct Fault {
  int32_t place;
  int32_t code;
  int64_t offset;
  const char* text;
};

// Of a record: so many of its headers are left out, because their names are not UTF-8.
struct Unnamed {
  int32_t place;
  int32_t left_out;
  int32_t headers;
  int64_t offset;
};

struct Found {
  int64_t rows;
  int64_t n_runs;
  int64_t n_faults;
  int64_t n_unnamed;
  int32_t has_headers;
  const Run* runs;
  const Fault* faults;
  const Unnamed* unnamed;
};

struct Place {
  std::string topic;
  int32_t partition;
};

// A limit for the keys and for the headers of a batch: Arrow counts their bytes in 32 bits.
constexpr int64_t kMostBytes = std::numeric_limits<int32_t>::max() / 2;

// A record, the event of librdkafka that holds it, and its headers among those of the batch.
struct Record {
  void* event;
  const Message* message;
  size_t first_header;
  int32_t headers;
};

struct Header {
  const char* name;
  size_t name_size;
  const void* value;
  size_t size;
};

struct Queue {
  void* client;
  void* own;
  std::vector<Place> places;
  std::unordered_map<std::string, std::vector<int32_t>> by_topic;  // partition -> place
  // Of the last batch, until the next one.
  std::vector<Record> batch;
  std::vector<Run> runs;
  std::vector<Fault> faults;
  std::vector<Unnamed> unnamed;
  std::deque<std::string> texts;
  std::vector<Header> headers;
  int64_t name_bytes, header_bytes;
};

int64_t bytes_of(const Record& record) { return int64_t(record.message->len); }

int32_t place_of(const Queue* queue, const char* topic, int32_t partition) {
  const auto found = queue->by_topic.find(topic);
  if (found == queue->by_topic.end()) return -1;
  const std::vector<int32_t>& own = found->second;
  return size_t(partition) < own.size() ? own[size_t(partition)] : -1;
}

// Note an error or the end of a partition. Errors of the client are for callbacks alone: it has
// none for them here.
void note_fault(Queue* queue, void* event) {
  TopicPartition* at = kafka.event_topic_partition(event);
  if (at == nullptr) return;
  const char* text = kafka.event_error_string(event);
  queue->texts.emplace_back(text == nullptr ? "" : text);
  queue->faults.push_back({place_of(queue, at->topic, at->partition), kafka.event_error(event),
                           at->offset, queue->texts.back().c_str()});
  kafka.topic_partition_destroy(at);
}

// Note the headers of a record whose names are text, and how many of them are left out.
void note_headers(Queue* queue, Record& record) {
  void* own = nullptr;
  record.first_header = queue->headers.size();
  if (kafka.message_headers(record.message, &own) != 0) return;
  Header header{};
  int32_t all = 0;
  for (; kafka.header_get_all(own, size_t(all), &header.name, &header.value, &header.size) == 0;
       ++all) {
    header.name_size = std::strlen(header.name);
    if (!is_utf8(header.name, header.name + header.name_size)) continue;
    if (header.value == nullptr) header.size = 0;
    queue->name_bytes += int64_t(header.name_size);
    queue->header_bytes += int64_t(header.size);
    queue->headers.push_back(header);
    ++record.headers;
  }
  if (record.headers == all) return;
  const Message* message = record.message;
  const int32_t place = place_of(queue, kafka.topic_name(message->topic), message->partition);
  queue->unnamed.push_back({place, all - record.headers, all, message->offset});
}

void destroy(std::vector<Record>& records) {
  for (const Record& record : records) kafka.event_destroy(record.event);
  records.clear();
}

// Add to `batch` what has arrived: `max_rows` at most, and none after `max_bytes` are reached.
//
// As events, because the functions that return messages call callbacks, which end the process
// where confluent-kafka has not called them itself.
void take_arrived(Queue* queue, size_t max_rows, int64_t max_bytes, int timeout_ms) {
  std::vector<Record>& batch = queue->batch;
  destroy(batch);
  queue->faults.clear();
  queue->texts.clear();
  queue->unnamed.clear();
  queue->headers.clear();
  queue->name_bytes = queue->header_bytes = 0;
  int64_t bytes = 0, key_bytes = 0;
  while (batch.size() < max_rows && bytes < max_bytes &&
         key_bytes + queue->name_bytes + queue->header_bytes < kMostBytes) {
    // The end of a partition is news, too: what waits for it must not wait for a record.
    const bool is_first = batch.empty() && queue->faults.empty();
    Record record{kafka.queue_poll(queue->own, is_first ? timeout_ms : 0), nullptr, 0, 0};
    if (record.event == nullptr) break;
    const int type = kafka.event_type(record.event);
    if (type == kFetch) record.message = kafka.event_message_next(record.event);
    if (type == kError) note_fault(queue, record.event);
    if (record.message == nullptr) {
      kafka.event_destroy(record.event);
      continue;
    }
    bytes += bytes_of(record);
    key_bytes += int64_t(record.message->key_len);
    note_headers(queue, record);
    batch.push_back(record);
  }
}

// Sort the batch by place; within a place the order stays.
void sort_batch(Queue* queue) {
  queue->runs.clear();
  std::vector<Record>& batch = queue->batch;
  std::vector<int32_t> places(batch.size());
  std::vector<size_t> counts(queue->places.size() + 1);
  const Message* before = nullptr;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Message* message = batch[i].message;
    const bool same = before != nullptr && before->topic == message->topic &&
                      before->partition == message->partition;
    // Only partitions that were added are forwarded: each record has a place.
    places[i] = same ? places[i - 1]
                     : place_of(queue, kafka.topic_name(message->topic), message->partition);
    before = message;
    ++counts[size_t(places[i]) + 1];
  }
  for (size_t i = 1; i < counts.size(); ++i) counts[i] += counts[i - 1];
  std::vector<Record> sorted(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) sorted[counts[size_t(places[i])]++] = batch[i];
  batch.swap(sorted);
  size_t row = 0;
  for (size_t place = 0; place < queue->places.size(); ++place) {
    const size_t end = counts[place];  // by now the begin of the next one
    if (end == row) continue;
    queue->runs.push_back({int32_t(place), int32_t(end - row), 0, batch[row].message->offset,
                           batch[end - 1].message->offset});
    for (; row < end; ++row) queue->runs.back().bytes += bytes_of(batch[row]);
  }
}

ArrowArray* headers_to_arrow(const Queue* queue) {
  const std::vector<Record>& batch = queue->batch;
  const size_t count = batch.size(), all = queue->headers.size();
  Values names(all, size_t(queue->name_bytes)), values(all, size_t(queue->header_bytes));
  Memory offsets(sizeof(int32_t) * (count + 1)), valid((count + 7) / 8);
  std::memset(valid.as<char>(), 0, (count + 7) / 8);
  int32_t end = offsets.as<int32_t>()[0] = 0;
  int64_t nulls = 0;
  for (size_t row = 0; row < count; ++row) {
    const Record& record = batch[row];
    for (int32_t i = 0; i < record.headers; ++i) {
      const Header& header = queue->headers[record.first_header + size_t(i)];
      names.add(header.name, header.name_size);
      values.add(header.value, header.size);
    }
    end += record.headers;
    if (record.headers > 0)
      valid.as<uint8_t>()[row / 8] |= uint8_t(1U << (row % 8));
    else
      ++nulls;
    offsets.as<int32_t>()[row + 1] = end;
  }
  ArrowArray *entries = new_array(), *maps = new_array();
  fill(entries, int64_t(all), 0, {nullptr}, {names.take(), values.take()});
  fill(maps, int64_t(count), nulls, {valid.take(), offsets.take()}, {entries});
  return maps;
}

// Fill `out` with the columns key, value, offset, timestamp, and headers where a row has some.
void to_arrow(const Queue* queue, ArrowArray* out) {
  const std::vector<Record>& batch = queue->batch;
  const size_t count = batch.size();
  size_t key_bytes = 0, value_bytes = 0;
  for (const Record& record : batch) {
    const Message* message = record.message;
    key_bytes += message->key == nullptr ? 0 : message->key_len;
    value_bytes += message->payload == nullptr ? 0 : message->len;
  }
  Values keys(count, key_bytes), values(count, value_bytes);
  Memory offsets(sizeof(int64_t) * count), times(sizeof(int64_t) * count);
  for (size_t row = 0; row < count; ++row) {
    const Message* message = batch[row].message;
    int kind = 0;
    keys.add(message->key, message->key_len);
    values.add(message->payload, message->len);
    offsets.as<int64_t>()[row] = message->offset;
    times.as<int64_t>()[row] = kafka.message_timestamp(message, &kind);
  }
  ArrowArray* maps = queue->headers.empty() ? nullptr : headers_to_arrow(queue);
  const auto n = int64_t(count);
  ArrowArray *key = keys.take(), *value = values.take();
  ArrowArray *offset = take_numbers(offsets, n), *time = take_numbers(times, n);
  if (maps == nullptr)
    fill(out, n, 0, {nullptr}, {key, value, offset, time});
  else
    fill(out, n, 0, {nullptr}, {key, value, offset, time, maps});
}

// Put an object of Python into a row of a list, which takes it. False: out of memory.
bool put(void* list, size_t row, void* made) {
  return made != nullptr && python.set_item(list, ssize_t(row), made) == 0;
}

bool put_bytes(void* list, size_t row, const void* data, size_t size) {
  return data == nullptr ||
         put(list, row, python.bytes(static_cast<const char*>(data), ssize_t(size)));
}

}  // namespace

#pragma GCC visibility push(default)

extern "C" {

void homeport_load(const Librdkafka* of_kafka, const Python* of_python) {
  kafka = *of_kafka;
  python = *of_python;
}

// Return what confluent-kafka has set as the opaque of `client`: the object that holds it.
void* homeport_opaque(void* client) { return kafka.opaque(client); }

void* homeport_open(void* client) {
  try {
    auto* queue = new Queue{};
    queue->client = client;
    queue->own = kafka.queue_new(client);
    return queue;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Add a partition; batches have the partitions in the order in which they were added.
int homeport_add(void* handle, const char* topic, int32_t partition) {
  auto* queue = static_cast<Queue*>(handle);
  try {
    std::vector<int32_t>& own = queue->by_topic[topic];
    if (size_t(partition) >= own.size()) own.resize(size_t(partition) + 1, -1);
    own[size_t(partition)] = int32_t(queue->places.size());
    queue->places.push_back({topic, partition});
    return 1;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

// Let the records of a place arrive in this queue, until the client is assigned others.
void homeport_forward(void* handle, int32_t index) {
  auto* queue = static_cast<Queue*>(handle);
  const Place& place = queue->places[size_t(index)];
  void* from = kafka.queue_get_partition(queue->client, place.topic.c_str(), place.partition);
  if (from == nullptr) return;  // its records arrive in the consumer's queue, which is read too
  kafka.queue_forward(from, queue->own);
  kafka.queue_destroy(from);
}

// Take a batch: `found` has all but its rows, which one of the next two functions takes. 0: out of
// memory; the queue can only be closed then.
int homeport_poll(void* handle, int64_t max_rows, int64_t max_bytes, int32_t timeout_ms,
                  Found* found) {
  auto* queue = static_cast<Queue*>(handle);
  try {
    take_arrived(queue, size_t(max_rows), max_bytes, timeout_ms);
    sort_batch(queue);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  *found = {int64_t(queue->batch.size()),   int64_t(queue->runs.size()),
            int64_t(queue->faults.size()),  int64_t(queue->unnamed.size()),
            queue->headers.empty() ? 0 : 1, queue->runs.data(),
            queue->faults.data(),           queue->unnamed.data()};
  return 1;
}

// Move the rows into `out`. 0: as above.
int homeport_take_arrow(void* handle, ArrowArray* out) {
  auto* queue = static_cast<Queue*>(handle);
  try {
    to_arrow(queue, out);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  destroy(queue->batch);
  return 1;
}

// Move keys, values and offsets into lists of Python, which have None in each row. The caller holds
// Python's lock, and looks for the exception that is set where memory ends.
void homeport_take_objects(void* handle, void* keys, void* values, void* offsets) {
  auto* queue = static_cast<Queue*>(handle);
  for (size_t row = 0; row < queue->batch.size(); ++row) {
    const Message* message = queue->batch[row].message;
    if (!put_bytes(keys, row, message->key, message->key_len) ||
        !put_bytes(values, row, message->payload, message->len) ||
        !put(offsets, row, python.number(message->offset)))
      break;
  }
  destroy(queue->batch);
}

void homeport_close(void* handle) {
  auto* queue = static_cast<Queue*>(handle);
  destroy(queue->batch);
  kafka.queue_destroy(queue->own);
  delete queue;
}

}  // extern "C"
