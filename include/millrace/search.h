/* Looking for bytes in a frame. Include it by name. */
#ifndef MILLRACE_SEARCH_H
#define MILLRACE_SEARCH_H

#include <millrace/packet.h>

/* The offset in the frame of the first occurrence of `bytes` bytes that begins at `at` or behind it; -1: there is none. Letters match in
 * one case only. */
static long (*const packet_find)(const struct packet *p, __u64 at, const void *wanted, __u32 bytes) = (void *)0x10080;

#endif
