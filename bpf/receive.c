/* Counts the frames of a generator where they arrive, before the kernel spends anything on them, and drops them; all other
 * packets go on to the host. Everything is per CPU: a receive queue is read by one CPU at a time.
 */
#include "kernel.h"

#define STREAMS 64 /* the lower six bits of their word in the signature; above them stands whose clock it is */
#define WINDOW 64 /* words of 64 frames: how far back a copy is recognised */
#define MARK 0x6e77
#define BUCKETS 3968 /* 128 to an octave, up to 2^37 ns */

struct config {
	u32 gaps; /* sample times between arrivals */
	u32 per_flow;
	u64 end_ns; /* frames that come later are not counted */
	u32 clock; /* whose stamps can be compared with the clock here */
	u32 unused;
};

/* A reader copies it from its begin to its end while it is counted on. The highest number stands first and is written last,
 * so that a frame on its way through here never looks lost. */
struct stream {
	u64 next; /* one above the highest sequence seen on this CPU */
	u64 duplicates;
	u64 received;
	u64 reordered;
	u64 starts; /* how often the numbers began on this CPU */
	u64 window[WINDOW];
};

struct totals {
	u64 frames;
	u64 foreign;
	u64 bytes; /* with FCS */
	u64 first_ns;
	u64 last_ns;
	u64 flows_left_out; /* frames */
	u64 streams; /* a bit for each that came */
	u64 other_clocks; /* stamped frames whose stamps say nothing here */
	u64 late; /* after the end */
	u32 clock_in; /* frames until the clock is read again */
	u32 pair; /* whether the frame before this one was timed */
	u64 frames_then; /* at the last look at the clock */
};

struct histogram {
	u64 count;
	u64 sum;
	u64 least;
	u64 most;
	u64 bucket[BUCKETS];
};

struct flow {
	u8 source[16]; /* IPv4 in the last four */
	u8 destination[16];
	u16 source_port; /* as in the frame */
	u16 destination_port;
	u16 ipv6;
	u16 stream;
};

struct flow_count {
	u64 received;
	u64 next; /* one above its highest sequence */
	u64 gap; /* the least between two of its sequences, in order; 0: none yet */
	u32 duplicates;
	u32 reordered;
};

const volatile struct config config = {};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STREAMS);
	__type(key, u32);
	__type(value, struct stream);
} streams SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct totals);
} totals SEC(".maps");

/* 0: latency, 1: gaps */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct histogram);
} histograms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow);
	__type(value, struct flow_count);
} flows SEC(".maps");

/* The place of the highest bit, of a value of at least 128. */
static inline u32 octave(u64 x)
{
	u32 place = 0;
	if (x >> 32) {
		x >>= 32;
		place += 32;
	}
	if (x >> 16) {
		x >>= 16;
		place += 16;
	}
	if (x >> 8) {
		x >>= 8;
		place += 8;
	}
	if (x >> 4) {
		x >>= 4;
		place += 4;
	}
	if (x >> 2) {
		x >>= 2;
		place += 2;
	}
	return place + (u32)(x >> 1);
}

static __attribute__((noinline)) int note(u32 which, u64 ns)
{
	struct histogram *h = bpf_map_lookup_elem(&histograms, &which);
	if (!h)
		return 0;
	u64 bucket = ns;
	if (ns >= 128) {
		u32 shift = octave(ns) - 7;
		bucket = (u64)shift * 128 + (ns >> shift);
	}
	if (bucket >= BUCKETS)
		bucket = BUCKETS - 1;
	h->bucket[bucket]++;
	if (h->count == 0 || ns < h->least)
		h->least = ns;
	if (ns > h->most)
		h->most = ns;
	h->count++;
	h->sum += ns;
	return 0;
}

/* Out of the expected order: after a gap, late, or a copy, of which it says so. */
static __attribute__((noinline)) int odd(struct stream *s, u64 sequence)
{
	if (!s)
		return 0;
	u64 bit = 1ULL << (sequence & 63);
	u64 word = sequence >> 6;
	if (sequence >= s->next) {
		u64 last = (s->next - 1) >> 6;
		/* What lies between has not been seen. */
		if (s->next == 0)
			last = word - 1;
		for (u32 i = 0; i < WINDOW; i++) {
			if (last + 1 + i > word)
				break;
			s->window[(last + 1 + i) & (WINDOW - 1)] = 0;
		}
		if (word - last > WINDOW)
			s->window[word & (WINDOW - 1)] = 0;
		s->window[word & (WINDOW - 1)] |= bit;
		s->next = sequence + 1;
		return 0;
	}
	/* A copy of the first frame would be closer to it. */
	if (sequence == 0 && s->next >= 8)
		s->starts++;
	/* Older than the window: late, and whether a copy nobody knows. */
	if (((s->next - 1) >> 6) - word < WINDOW) {
		if (s->window[word & (WINDOW - 1)] & bit) {
			s->duplicates++;
			return 1;
		}
		s->window[word & (WINDOW - 1)] |= bit;
	}
	s->reordered++;
	return 0;
}

static __attribute__((noinline)) int count_flow(struct totals *t, struct flow *key, u64 sequence, int copy)
{
	if (!t || !key)
		return 0;
	struct flow_count *f = bpf_map_lookup_elem(&flows, key);
	if (!f) {
		struct flow_count first = { .received = 1, .next = sequence + 1 };
		if (bpf_map_update_elem(&flows, key, &first, BPF_NOEXIST))
			t->flows_left_out++;
		return 0;
	}
	f->received++;
	if (copy) {
		f->duplicates++;
	} else if (sequence >= f->next) {
		/* The entry of a CPU that it was not made on is all zeroes. */
		u64 gap = sequence + 1 - f->next;
		if (f->next && (!f->gap || gap < f->gap))
			f->gap = gap;
		f->next = sequence + 1;
	} else {
		f->reordered++;
	}
	return 0;
}

SEC("xdp")
int receive(struct xdp_md *ctx)
{
	u8 *data = (u8 *)(long)ctx->data;
	u8 *end = (u8 *)(long)ctx->data_end;
	u32 zero = 0;
	struct totals *t = bpf_map_lookup_elem(&totals, &zero);

	if (!t)
		return XDP_PASS;
	if (data + 58 > end)
		goto foreign;
	u8 *ip = data + 14;
	u16 type = *(u16 *)(data + 12);
	if (type == be16(0x8100)) {
		type = *(u16 *)(data + 16);
		ip = data + 18;
	}
	u8 *transport;
	u8 protocol;
	u8 ipv6 = 0;
	if (type == be16(0x0800)) {
		if (ip + 20 > end || ip[0] != 0x45)
			goto foreign;
		protocol = ip[9];
		transport = ip + 20;
	} else if (type == be16(0x86dd)) {
		if (ip + 40 > end)
			goto foreign;
		protocol = ip[6];
		transport = ip + 40;
		ipv6 = 1;
	} else {
		goto foreign;
	}
	u8 *payload;
	if (protocol == 17)
		payload = transport + 8;
	else if (protocol == 6)
		payload = transport + 20;
	else
		goto foreign;
	if (payload + 16 > end || *(u16 *)payload != be16(MARK))
		goto foreign;
	u32 word = be16(*(u16 *)(payload + 2));
	u32 number = word & (STREAMS - 1);
	u64 front = be64(*(u64 *)(payload + 4));
	u32 back = be32(*(u32 *)(payload + 12));
	u64 sequence = front >> 16;
	u64 stamp = (front & 0xffff) << 32 | back;

	u64 now = 0;
	if (t->clock_in == 0 || t->pair) {
		now = bpf_ktime_get_ns();
		if (config.end_ns && now >= config.end_ns) {
			t->late++;
			return XDP_DROP;
		}
		if (t->pair) {
			note(1, now - t->last_ns);
			t->pair = 0;
		}
		if (t->clock_in == 0) {
			/* Frames that come close together need no clock each. */
			u64 between = t->frames - t->frames_then;
			t->clock_in = t->last_ns && now - t->last_ns < between * 2000 ? 64 : 1;
			t->frames_then = t->frames;
			t->pair = config.gaps;
		}
		if (!t->first_ns)
			t->first_ns = now;
		t->last_ns = now;
	}
	t->clock_in--;
	t->frames++;
	t->bytes += (u64)(end - data) + 4;

	struct stream *s = bpf_map_lookup_elem(&streams, &number);
	if (!s)
		return XDP_DROP;
	int copy = 0;
	s->received++;
	if (likely(sequence == s->next)) {
		u64 *seen = &s->window[(sequence >> 6) & (WINDOW - 1)];
		if ((sequence & 63) == 0) {
			*seen = 0;
			t->streams |= 1ULL << number;
			s->starts += sequence == 0;
		}
		*seen |= 1ULL << (sequence & 63);
		s->next = sequence + 1;
	} else {
		copy = odd(s, sequence);
		t->streams |= 1ULL << number;
	}
	if (stamp) {
		if (!now) {
			/* A look at the clock that is there already: few frames, or slow ones, end when the last of them came. */
			now = bpf_ktime_get_ns();
			t->last_ns = now;
			t->frames_then = t->frames - 1;
		}
		if (word >> 6 == config.clock)
			note(0, (now - stamp) & 0xffffffffffffULL);
		else
			t->other_clocks++;
	}
	if (config.per_flow) {
		struct flow key = {};
		if (ipv6) {
			__builtin_memcpy(key.source, ip + 8, 16);
			__builtin_memcpy(key.destination, ip + 24, 16);
		} else {
			__builtin_memcpy(key.source + 12, ip + 12, 4);
			__builtin_memcpy(key.destination + 12, ip + 16, 4);
		}
		key.source_port = *(u16 *)transport;
		key.destination_port = *(u16 *)(transport + 2);
		key.ipv6 = ipv6;
		key.stream = number;
		count_flow(t, &key, sequence, copy);
	}
	return XDP_DROP;

foreign:
	t->foreign++;
	return XDP_PASS;
}
