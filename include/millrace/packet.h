/* The packet that a handler is given, and bounds-checked access to its bytes. */
#ifndef MILLRACE_PACKET_H
#define MILLRACE_PACKET_H

#include <millrace/word.h>

/* Before a loop over what few packets have (options, extension headers): keeps it a loop. Unrolled it
 * would be most of the function's code. */
#define MILLRACE_ROLLED _Pragma("clang loop unroll(disable)")

/* Keeps what a pointer points to in memory. A struct that is filled in on some paths only would otherwise
 * be spread over registers, and clang saves those on all paths, the ones that never set them included:
 * a read of nothing, for which a program is refused. */
#define MILLRACE_IN_MEMORY(pointer) __asm__ volatile("" : : "r"(pointer))

/* Read-only: a packet changes only through pointers that packet_at gives. */
struct packet {
	const __u32 data;     /* first byte of the frame; use packet_at */
	const __u32 data_end; /* one past its last */
	const __u32 data_meta;
	const __u32 port;  /* where it came in, as PORTS numbers them, from 0 */
	const __u32 queue; /* receive queue there */
	const __u32 reserved;
	const __u64 time;  /* ns since the epoch: the capture's time stamp, or the clock */
	const __u32 ports; /* how many ports there are */
};

/* Pointer to `size` bytes of the frame from byte `offset` on, or NULL when the frame ends before. */
MILLRACE_LIBRARY void *packet_bytes(const struct packet *p, __u32 offset, __u32 size)
{
	__u8 *at = (__u8 *)(long)p->data + offset;

	if (at + size > (__u8 *)(long)p->data_end)
		return (void *)0;
	/* Else clang would ask again, for the packet that begins at address 0. */
	__builtin_assume(at != (void *)0);
	return at;
}

/* The same, as a TYPE: struct udp *udp = packet_at(p, 34, struct udp); */
#define packet_at(p, offset, TYPE) ((TYPE *)packet_bytes((p), (offset), sizeof(TYPE)))

/* Bytes of the frame, without preamble and frame check sequence. */
MILLRACE_LIBRARY __u32 packet_length(const struct packet *p)
{
	return (__u32)((__u8 *)(long)p->data_end - (__u8 *)(long)p->data);
}

#endif
