// A part of librdkafka's stable C ABI that several sources share.

#ifndef HOMEPORT_MESSAGE_H_
#define HOMEPORT_MESSAGE_H_

#include <cstddef>
#include <cstdint>

namespace homeport {

struct Message {  // rd_kafka_message_t
  int err;
  void* topic;
  int32_t partition;
  void* payload;
  size_t len;
  void* key;
  size_t key_len;
  int64_t offset;
  void* own;
};

}  // namespace homeport

#endif  // HOMEPORT_MESSAGE_H_
