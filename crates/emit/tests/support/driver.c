/* Loads a module and feeds it packets, all by pipes, so that tests can run it under sanitizers.
 *
 * In: u32 plain, u32 burst size, u32 packets; per object u32 length of its initial value, bytes (none:
 * zeros); per packet u32 program, u32 port, u64 time, u32 length,
 * bytes. Out: per packet u32 fate, u32 out, u32 length, bytes; then per object u64 count.
 * Each packet has a memory of exactly its length, so that a sanitizer sees the first byte too far.
 */
#include "host.h"

int main(int argc, char **argv)
{
	struct mr_packet *packet, **pointers;
	struct mr_instance *self;
	u32 head[3], *program;
	u64 now = 0;

	load(argc, argv);
	take(head, sizeof(head));
	take_objects(0);
	packet = must(calloc(head[2] + 1, sizeof(*packet)));
	pointers = must(calloc(head[2] + 1, sizeof(*pointers)));
	program = must(calloc(head[2] + 1, sizeof(*program)));
	for (u32 i = 0; i < head[2]; i++) {
		pointers[i] = &packet[i];
		take(&program[i], 4);
		take_packet(&packet[i], i, NULL);
		now = packet[i].time;
	}
	self = started(packet[0].time);
	for (u32 i = 0; i < head[2];) {
		u32 n = 1;

		while (n < head[1] && i + n < head[2] && program[i + n] == program[i])
			n++;
		(head[0] ? module->burst_plain : module->burst)[program[i]](self, pointers + i, n);
		i += n;
	}
	for (u32 i = 0; i < head[2]; i++) {
		give_packet(&packet[i]);
		free(packet[i].data);
	}
	for (u32 i = 0; i < module->objects; i++) {
		u64 count = module->object[i].count ? module->object[i].count(self, now) : 0;

		give(&count, 8);
	}
	end(self);
	free_objects();
	free(packet);
	free(pointers);
	free(program);
	return 0;
}
