/* One entry of 65,536 a packet, which it reads, and adds to where the frame says so (bench/transact.sh). The key is the frame's
 * first 8 bytes. */
#include <millrace/nf.h>

struct entry {
	__u64 packets;
	__u64 allowed;
};

struct head {
	__u64 key;
	__u8 writes;
};

MAP(entries, __u64, struct entry, .capacity = 65536);

ON_PACKET(p)
{
	struct head *head = packet_at(p, 0, struct head);
	struct entry *entry;
	__u64 key;

	if (!head)
		return DROP_BECAUSE(unknown);
	key = head->key;
	entry = map_get(&entries, &key);
	if (!entry || entry->packets > entry->allowed)
		return DROP_BECAUSE(unknown);
	if (head->writes)
		entry->packets++;
	return FORWARD(0);
}
