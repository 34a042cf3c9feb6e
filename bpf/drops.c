/* Packets that the kernel drops in one network namespace, by reason; the tracepoint itself is of the whole kernel.
 * Source: include/trace/events/skb.h (kfree_skb: packet, place, reason), include/linux/skbuff.h, include/net/dropreason-core.h.
 */
#include "kernel.h"

#define BY_NAME __attribute__((preserve_access_index)) /* where it is in the running kernel, its BTF says */
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define NOT_SPECIFIED 2 /* SKB_DROP_REASON_NOT_SPECIFIED */
/* Namespaces are numbered from PROC_DYNAMIC_FIRST on (fs/proc/generic.c), the first ones of a boot just below it. */
#define NAMESPACE_FIRST 0xeffffff0

struct ns_common {
	u32 inum;
} BY_NAME;

struct net {
	struct ns_common ns;
} BY_NAME;

typedef struct {
	struct net *net;
} BY_NAME possible_net_t;

struct net_device {
	possible_net_t nd_net;
} BY_NAME;

struct sock_common {
	possible_net_t skc_net;
} BY_NAME;

struct sock {
	struct sock_common __sk_common;
} BY_NAME;

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	u16 protocol;
} BY_NAME;

/* The number of the namespace. */
const volatile u32 config = 0;

/* crates/sys/src/drops.rs reads it. */
struct drop {
	u64 place; /* of those without a reason */
	u32 reason;
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct drop);
	__type(value, u64);
} drops SEC(".maps");

enum { ELSEWHERE, UNCOUNTED, OTHERS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OTHERS);
	__type(key, u32);
	__type(value, u64);
} others SEC(".maps");

static inline void count(u32 which)
{
	u64 *n = bpf_map_lookup_elem(&others, &which);

	if (n)
		++*n;
}

SEC("tp_btf/kfree_skb")
int dropped(u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];
	u16 protocol = skb->protocol;
	struct drop of = { .reason = ctx[2] };
	struct sock *sk;
	u64 *n, one = 1;
	u32 namespace;

	if (protocol != be16(ETH_P_IP) && protocol != be16(ETH_P_IPV6))
		return 0;
	/* A packet on its way has a device. A socket's queue keeps other things in the same place, and a packet that was not routed yet
	 * has none: then the socket tells. */
	namespace = skb->dev->nd_net.net->ns.inum;
	sk = skb->sk;
	if (namespace < NAMESPACE_FIRST && sk)
		namespace = sk->__sk_common.skc_net.net->ns.inum;
	if (namespace != config) {
		count(ELSEWHERE);
		return 0;
	}
	if (of.reason == NOT_SPECIFIED)
		of.place = ctx[1];
	n = bpf_map_lookup_elem(&drops, &of);
	if (!n && bpf_map_update_elem(&drops, &of, &one, BPF_NOEXIST)) {
		n = bpf_map_lookup_elem(&drops, &of); /* another CPU was faster */
		if (!n)
			count(UNCOUNTED);
	}
	if (n)
		++*n;
	return 0;
}
