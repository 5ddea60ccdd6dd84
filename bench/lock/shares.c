/* A packet looks up one of a thousand entries that all workers share; one of this many, drawn by its number, changes it. */
#include <millrace/nf.h>

PARAM(__u64, one_in, 0); /* packets a write; 0: none writes */

MAP(entries, __u32, __u64, .capacity = 4096);

ON_START()
{
	for (__u32 i = 0; i < 1024; i++)
		map_put(&entries, &i, &(__u64){ 0 });
}

ON_PACKET(p)
{
	__u8 *bytes = packet_bytes(p, 0, 34);
	__u64 *value;
	__u32 key;

	if (!bytes)
		return DROP;
	key = (bytes[28] << 8 | bytes[29]) & 1023;
	value = map_get(&entries, &key);
	if (!value)
		return DROP;
	if (one_in && random32() * one_in >> 32 == 0)
		*value += 1;
	return FORWARD(peer(p));
}
