/* The record by which a handler's state object is declared: what nf.h's MAP, VECTOR … leave behind
 * in the section `millrace/state`, one each, read by the loader. Authors need not look here.
 */
#ifndef MILLRACE_OBJECT_H
#define MILLRACE_OBJECT_H

#include <linux/types.h>

enum millrace_kind {
	MILLRACE_MAP = 1,
	MILLRACE_VECTOR = 2,
	MILLRACE_ALLOCATOR = 3,
	MILLRACE_SKETCH = 4,
	MILLRACE_LPM = 5,
	MILLRACE_CLASSIFIER = 6,
	MILLRACE_DISTRIBUTED = 7,
};

struct millrace_options {
	__u64 capacity;     /* most entries; vectors: elements; allocators: how many numbers; sketches: columns a row;
	                     * classifiers: rules */
	__u64 expire_after; /* ns until an entry that is not refreshed is absent; 0: never */
	__u64 first;        /* allocators: the first number */
	__u64 window;       /* sketches: ns after which counts start again; 0: never */
	union {
		__u32 rows;    /* sketches: rows */
		__u32 classes; /* classifiers: classes, 2 unless set; 0 is that of keys in no rule */
	};
	__u32 reserved;
	__u64 staleness;    /* distributed: ns that a read may be behind what other cores did; 0: not at all */
};

struct millrace_object {
	__u32 kind;      /* enum millrace_kind */
	__u32 key_bytes;
	__u32 value_bytes;
	__u32 reserved;
	struct millrace_options options;
};

#endif
