// Readers of records into columns: which fields they have.

#include "columns.h"

#include <memory>
#include <new>

using homeport::Fields;
using homeport::Kind;

#pragma GCC visibility push(default)

extern "C" {

// Make a reader of `count` fields in which each object comes before its parts; the first one is
// the record. `objects` has the number of the object of each field. Null: out of memory.
void* homeport_columns_open(int32_t count, const int32_t* kinds, const int32_t* objects,
                            const char* const* names, const bool* are_made,
                            const int32_t* forms) {
  try {
    auto fields = std::make_unique<Fields>();
    for (int32_t i = 0; i < count; ++i) {
      fields->push_back({Kind(kinds[i]), are_made[i], forms[i], names[i], {}});
      if (i > 0) (*fields)[size_t(objects[i])].parts.push_back(i);
    }
    return fields.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void homeport_columns_close(void* reader) { delete static_cast<Fields*>(reader); }

}  // extern "C"
