/* A map with a key and a value, as BPF programs declare it. */
#define MAP(name, kind, capacity, key_type, value_type) \
	struct {                                        \
		__uint(type, BPF_MAP_TYPE_##kind);      \
		__uint(max_entries, capacity);          \
		__type(key, key_type);                  \
		__type(value, value_type);              \
	} name SEC(".maps")
