/* A key with fields of all sizes and both byte orders, some at odd places; its class goes into the packet. */
#include <millrace/nf.h>

struct key {
	__u8 kind;
	__u8 address[16];
	__u8 gap;
	__be16 port;
	__u32 mark;
	__u64 tag;
	__be32 host;
	__u32 more;
};

CLASSIFIER(rules, struct key, .classes = 7);
MAP(seen, struct key, __u32, .capacity = 64);

ON_PACKET(p)
{
	struct key key;
	__u8 *at = packet_bytes(p, 0, sizeof(key) + 8);
	__u32 *times, first, second;

	if (!at)
		return DROP;
	__builtin_memcpy(&key, at, sizeof(key));
	first = classify(&rules, &key);
	/* A second key, once the class is known. */
	key.kind = (__u8)first;
	second = classify(&rules, &key);
	if (second == 6) {
		at[sizeof(key)] = (__u8)first;
		at[sizeof(key) + 1] = (__u8)second;
		return FORWARD(p->port);
	}
	times = map_get(&seen, &key);
	at[sizeof(key)] = (__u8)first;
	at[sizeof(key) + 1] = (__u8)second;
	if (times)
		at[sizeof(key) + 2] = (__u8)++*times;
	else if (map_put(&seen, &key, &(__u32){ 1 }))
		at[sizeof(key) + 2] = 1;
	return FORWARD(p->port);
}
