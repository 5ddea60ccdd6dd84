/* What include/millrace finds in frames: each comes as its length (4 bytes, the machine's order) and its bytes, and
 * is answered by the kind of its flow, its network header's offset and EtherType, and the flow: 48 bytes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <millrace/flow.h>

#define ROOM 65536

int main(void)
{
	/* Addresses in a packet's descriptor have 32 bits. */
	__u8 *at = mmap(0, 2 * ROOM, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	__u32 length;

	if (at == MAP_FAILED)
		return 1;
	while (fread(&length, 1, sizeof(length), stdin) == sizeof(length)) {
		struct {
			__u32 kind, network;
			struct flow flow;
		} found;
		__be16 type = 0;

		if (length > ROOM || fread(at, 1, length, stdin) != length)
			return 2;
		/* What lies behind the frame is not zero: reading it would show. */
		memset(at + length, 0xa5, 256);
		struct packet p = { .data = (__u32)(long)at, .data_end = (__u32)(long)(at + length) };
		memset(&found, 0, sizeof(found));
		found.network = packet_network(&p, &type);
		if (found.network)
			found.network |= (__u32)ntohs(type) << 16;
		found.kind = packet_find_flow(&p, &found.flow);
		if (found.kind != FLOW_OWN && found.kind != FLOW_CARRIED)
			memset(&found.flow, 0, sizeof(found.flow));
		if (fwrite(&found, 1, sizeof(found), stdout) != sizeof(found))
			return 3;
	}
	return 0;
}
