/* The rows that a module's `extract` fills.
 *
 * In: u32 packets; per object u32 length of its initial value, bytes; per packet u32 port, u64 time, u32 length, bytes.
 * Out: u32 bytes of a row, u32 bits of the time; per packet u32 whether it has a row, and the row. Each packet lies in a
 * memory of exactly its length.
 */
#include "../support/host.h"

int main(int argc, char **argv)
{
	struct mr_instance *self;
	u32 packets, bits;
	u8 *row;

	load(argc, argv);
	take(&packets, 4);
	take_objects(0);
	self = created();
	row = must(malloc(module->history->bytes));
	bits = module->history->time_bits;
	give(&module->history->bytes, 4);
	give(&bits, 4);
	for (u32 i = 0; i < packets; i++) {
		struct mr_packet p;
		u32 has;

		take_packet(&p, i, NULL);
		memset(row, 0, module->history->bytes);
		has = module->history->extract(self, 0, &p, row);
		give(&has, 4);
		give(row, module->history->bytes);
		free(p.floor);
	}
	return 0;
}
