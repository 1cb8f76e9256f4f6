// Columns in Arrow's C data interface, their memory from malloc.

#ifndef HOMEPORT_ARROW_H_
#define HOMEPORT_ARROW_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <utility>
#include <vector>

namespace homeport {

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

inline void release(ArrowArray* array) {
  for (int64_t i = 0; i < array->n_children; ++i) {
    ArrowArray* child = array->children[i];
    if (child->release != nullptr) child->release(child);
    std::free(child);
  }
  for (int64_t i = 0; i < array->n_buffers; ++i) std::free(const_cast<void*>(array->buffers[i]));
  std::free(array->children);
  std::free(array->buffers);
  array->release = nullptr;
}

// Memory that belongs to Arrow once `take` was called.
class Memory {
 public:
  explicit Memory(size_t size) : data_(std::malloc(size + 64)) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  ~Memory() { std::free(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  template <typename T>
  T* as() { return static_cast<T*>(data_); }
  void* take() { return std::exchange(data_, nullptr); }

 private:
  void* data_;
};

inline void fill(ArrowArray* array, int64_t length, int64_t nulls,
                 std::initializer_list<void*> buffers,
                 const std::vector<ArrowArray*>& children) {
  *array = {length, nulls, 0, int64_t(buffers.size()), int64_t(children.size()), nullptr, nullptr,
            nullptr, release, nullptr};
  // Of fewer than a hundred bytes: a system that lacks them ends processes rather than calls.
  array->buffers = static_cast<const void**>(std::malloc(sizeof(void*) * (buffers.size() + 1)));
  array->children =
      static_cast<ArrowArray**>(std::malloc(sizeof(void*) * (children.size() + 1)));
  if (array->buffers == nullptr || array->children == nullptr) std::abort();
  std::copy(buffers.begin(), buffers.end(), array->buffers);
  std::copy(children.begin(), children.end(), array->children);
}

inline ArrowArray* new_array() {
  auto* array = static_cast<ArrowArray*>(std::calloc(1, sizeof(ArrowArray)));
  if (array == nullptr) std::abort();
  return array;
}

// Values of bytes or text, of a known number and size.
class Values {
 public:
  Values(size_t count, size_t bytes)
      : offsets_(sizeof(int32_t) * (count + 1)), data_(bytes), valid_((count + 7) / 8) {
    std::memset(valid_.as<char>(), 0, (count + 7) / 8);
    offsets_.as<int32_t>()[0] = 0;
  }
  void add(const void* data, size_t size) {
    if (data != nullptr) {
      if (size > 0) std::memcpy(data_.as<char>() + end_, data, size);
      end_ += int32_t(size);
      valid_.as<uint8_t>()[count_ / 8] |= uint8_t(1U << (count_ % 8));
    } else {
      ++nulls_;
    }
    offsets_.as<int32_t>()[++count_] = end_;
  }
  ArrowArray* take() {
    ArrowArray* array = new_array();
    fill(array, int64_t(count_), nulls_,
         {nulls_ == 0 ? nullptr : valid_.take(), offsets_.take(), data_.take()}, {});
    return array;
  }

 private:
  Memory offsets_, data_, valid_;
  size_t count_ = 0;
  int32_t end_ = 0;
  int64_t nulls_ = 0;
};

inline ArrowArray* take_numbers(Memory& numbers, int64_t count) {
  ArrowArray* array = new_array();
  fill(array, count, 0, {nullptr, numbers.take()}, {});
  return array;
}

}  // namespace homeport

#endif  // HOMEPORT_ARROW_H_
