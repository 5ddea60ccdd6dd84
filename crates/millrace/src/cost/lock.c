/* What the lock costs on this machine: one of `period` packets of each worker writes a shared entry, the others
 * read one.
 */
#include <millrace/nf.h>

PARAM(__u64, period, 0);

/* Packets of this worker since its last write. */
VECTOR(since, __u64, .capacity = 1);
MAP(entries, __u32, __u64, .capacity = 4096);

ON_START(p)
{
    for (__u32 key = 0; key < 1024; key++)
        map_put(&entries, &key, &(__u64){ 0 });
}

ON_PACKET(p)
{
    __u8 *bytes = packet_bytes(p, 0, 60);
    __u64 *count = vector_at(&since, 0), *value;
    __u32 key;

    if (!bytes || !count)
        return DROP;
    key = (bytes[28] << 8 | bytes[29]) & 1023;
    *count += 1;
    value = map_get(&entries, &key);
    if (!value)
        return DROP;
    if (*count >= period) {
        *count = 0;
        *value += 1;
    }
    return FORWARD(0);
}
