/* The little of the kernel's interface that these programs use, so that building them needs clang and nothing else.
 * Source: include/uapi/linux/bpf.h (numbers of helpers, struct xdp_md, actions, map types). */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

enum { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };
enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_HASH = 5, BPF_MAP_TYPE_PERCPU_ARRAY = 6 };
enum { BPF_NOEXIST = 1 };

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_xdp_adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static inline u16 be16(u16 x) { return __builtin_bswap16(x); }
static inline u32 be32(u32 x) { return __builtin_bswap32(x); }
static inline u64 be64(u64 x) { return __builtin_bswap64(x); }
