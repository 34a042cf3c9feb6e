/* The least that a generator and a receiver can be: what they reach is the limit of the machine, against which the real ones
 * are measured (bench/). */
#include "kernel.h"

const volatile u64 config = 0;

SEC("xdp")
int send(struct xdp_md *ctx)
{
	return config ? XDP_DROP : XDP_TX;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} count SEC(".maps");

SEC("xdp")
int drop(struct xdp_md *ctx)
{
	u32 zero = 0;
	u64 *n = bpf_map_lookup_elem(&count, &zero);
	if (n)
		++*n;
	return XDP_DROP;
}
