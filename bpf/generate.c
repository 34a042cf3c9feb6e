/* Frames made inside the kernel. The program is run on the same few pages over and over (BPF_PROG_TEST_RUN with live frames,
 * net/bpf/test_run.c); each call writes one frame and returns XDP_TX, or XDP_DROP while none is due. One object is loaded
 * for each worker, so nothing here is shared between CPUs.
 *
 * A page comes back as the last host left it (a router changes addresses and the hop limit), so the headers are written anew
 * each time: eight or ten stores.
 */
#include "kernel.h"

#define SIZES_MOST 64
#define HEADER_WORDS 12 /* 14 + 4 + 40 + 20 bytes of headers, in words of eight bytes, and room */
#define BROADCAST_STREAM 63
#define FRACTION 20 /* bits of a nanosecond */

/* Layouts are those of crates/traffic/src/frames/live/layout.rs. */
struct size {
	u32 length; /* without FCS */
	u32 ip_sum; /* of what does not change from frame to frame */
	u32 transport_sum;
	u16 ip_length; /* as it stands in the header */
	u16 transport_length;
};

struct config {
	u64 interval; /* between two frames, in 2^-FRACTION ns; 0: not paced */
	u64 catch_up; /* likewise, while a stall is made up for */
	u64 most_behind; /* frames; those before are given up */
	u64 limit; /* the most frames */
	u64 seed;
	u64 flows; /* of this worker */
	u64 source_low; /* the last 4 (IPv4) or 8 bytes of the first address */
	u64 destination_low;
	u64 source_high; /* the first 8 bytes (IPv6) where networks are walked through, else 0 */
	u64 destination_high;
	u32 sources;
	u32 destinations;
	u32 source_ports;
	u32 destination_ports;
	u32 source_stride; /* the addresses are 2^n apart; from 64 on it is the first 8 bytes that vary */
	u32 destination_stride;
	u32 first[4]; /* where this worker begins: source port, source, destination port, destination */
	u16 source_port;
	u16 destination_port;
	u32 burst;
	u32 stamp_every; /* 0: never */
	u32 sizes;
	u8 ipv6;
	u8 tcp;
	u8 random;
	u8 several_sizes;
	u32 ip; /* offsets */
	u32 transport;
	u32 payload;
	u32 broadcast_every; /* the last of so many frames goes to all stations; 0: none */
	u32 broadcast_sum; /* by how much its stream's number is the larger one */
	u64 header[HEADER_WORDS]; /* up to the payload, and the constant half of the signature */
	struct size size[SIZES_MOST];
};

/* Written before the first run: the times, `next`, `left`, `wheel`. */
struct state {
	u64 start_ns; /* CLOCK_MONOTONIC */
	u64 end_ns;
	u64 sequence; /* of the next frame, and how many were handed over */
	u64 skipped; /* frames that were due and given up after a stall */
	u64 next; /* when the next frame is due, in 2^-FRACTION ns from the start */
	u64 first_ns;
	u64 last_ns;
	u64 done;
	u64 left; /* frames until the walk begins anew */
	u64 gate; /* how far the frames got that leave faster than the load */
	u64 ready; /* set before the start: the pages are made, and only the start is waited for */
	u32 credit; /* frames that may leave without asking the clock */
	u32 stamp_in; /* frames until the next stamp */
	u32 wheel[4];
	u32 size;
	u32 longest_burst;
	u32 broadcast_in; /* frames until the next one to all stations, that one included */
	u32 unused;
	u64 to_all; /* frames to all stations so far: they have numbers of their own */
};

const volatile struct config config = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct state);
} state SEC(".maps");

/* The sum of the four 16-bit words. */
static inline u32 words(u64 x)
{
	return (u32)(x >> 48) + (u32)(x >> 32 & 0xffff) + (u32)(x >> 16 & 0xffff) + (u32)(x & 0xffff);
}

static inline u16 fold(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16)sum;
}

/* The number that splitmix64 gives after so many steps from the seed (Steele, Lea, Flood 2014), as in
 * crates/wire/src/frame/flow.rs. */
static inline u64 mix(u64 seed, u64 steps)
{
	u64 x = seed + (steps + 1) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static inline void turn(struct state *s)
{
	if (--s->left == 0) {
		s->left = config.flows;
		for (int i = 0; i < 4; i++)
			s->wheel[i] = config.first[i];
		return;
	}
	if (++s->wheel[0] < config.source_ports)
		return;
	s->wheel[0] = 0;
	if (++s->wheel[1] < config.sources)
		return;
	s->wheel[1] = 0;
	if (++s->wheel[2] < config.destination_ports)
		return;
	s->wheel[2] = 0;
	if (++s->wheel[3] < config.destinations)
		return;
	s->wheel[3] = 0;
}

static inline void throw(struct state *s, u64 number)
{
	u64 index = mix(config.seed, number) % config.flows;
	s->wheel[0] = index % config.source_ports;
	index /= config.source_ports;
	s->wheel[1] = index % config.sources;
	index /= config.sources;
	s->wheel[2] = index % config.destination_ports;
	s->wheel[3] = index / config.destination_ports;
}

/* Whether a frame may leave now; `now` becomes the time where the clock was asked, else 0. */
static inline int due(struct state *s, u64 *now)
{
	if (s->credit > 0)
		return 1;
	*now = bpf_ktime_get_ns();
	if (*now < s->start_ns) {
		if (!s->ready)
			s->ready = 1;
		return 0;
	}
	int over = *now >= s->end_ns;
	if (config.interval == 0) {
		s->done = over;
		s->credit = 64;
		return !over;
	}
	/* At the end, what fell due before it is still sent, so that the count is exact. */
	u64 since = ((over ? s->end_ns : *now) - s->start_ns) << FRACTION;
	since -= over;
	if (since < s->next) {
		s->done = over;
		return 0;
	}
	u64 behind = (since - s->next) / config.interval + 1;
	if (behind > config.most_behind) {
		/* What the count does not ask for was not due. */
		u64 left = config.limit - s->sequence;
		u64 asked = behind < left ? behind : left;
		if (asked > config.most_behind)
			s->skipped += asked - config.most_behind;
		s->next += (behind - config.most_behind) * config.interval;
		behind = config.most_behind;
	}
	if (behind > config.burst) {
		/* A stall is never repaid by a burst above the one allowed: the rest leaves a little faster than the load. */
		u64 real = (*now - s->start_ns) << FRACTION;
		u64 burst = (u64)config.burst * config.catch_up;
		if (real > burst && s->gate < real - burst)
			s->gate = real - burst;
		u64 allowed = real > s->gate ? (real - s->gate) / config.catch_up : 0;
		if (allowed == 0)
			return 0;
		behind = allowed < config.burst ? allowed : config.burst;
		s->gate += behind * config.catch_up;
	}
	s->credit = behind;
	if (behind > s->longest_burst)
		s->longest_burst = behind;
	return 1;
}

SEC("xdp")
int generate(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct state *s = bpf_map_lookup_elem(&state, &zero);
	u64 now = 0;

	if (!s || s->done)
		return XDP_DROP;
	if (!due(s, &now))
		return XDP_DROP;

	u32 index = config.several_sizes ? s->size & (SIZES_MOST - 1) : 0;
	const volatile struct size *size = &config.size[index];

	if (config.several_sizes) {
		long length = (long)ctx->data_end - (long)ctx->data;
		if (length != size->length && bpf_xdp_adjust_tail(ctx, (int)size->length - (int)length))
			return XDP_DROP;
	}
	u8 *data = (u8 *)(long)ctx->data;
	u8 *end = (u8 *)(long)ctx->data_end;
	if (data + config.payload + 16 > end)
		return XDP_DROP;

#pragma clang loop unroll(full)
	for (u32 i = 0; i < HEADER_WORDS; i++)
		if (i * 8 < config.payload + 4)
			*(u64 *)(data + i * 8) = config.header[i];

	u64 number = s->sequence;
	int to_all = 0;
	if (config.broadcast_every) {
		to_all = --s->broadcast_in == 0;
		number = to_all ? s->to_all : number - s->to_all;
	}

	if (config.random)
		throw(s, number);
	u16 source_port = config.source_port + s->wheel[0];
	u16 destination_port = config.destination_port + s->wheel[2];
	u64 source = config.source_low, source_high = config.source_high;
	u64 destination = config.destination_low, destination_high = config.destination_high;
	if (config.source_stride < 64)
		source += (u64)s->wheel[1] << config.source_stride;
	else
		source_high += (u64)s->wheel[1] << (config.source_stride & 63);
	if (config.destination_stride < 64)
		destination += (u64)s->wheel[3] << config.destination_stride;
	else
		destination_high += (u64)s->wheel[3] << (config.destination_stride & 63);

	u64 stamp = 0;
	if (config.stamp_every) {
		if (s->stamp_in == 0) {
			s->stamp_in = config.stamp_every;
			stamp = now ? now : bpf_ktime_get_ns();
			stamp &= 0xffffffffffffULL;
		}
		s->stamp_in--;
	}

	/* The signature: mark and stream stand in the header words; sequence and time follow, 48 bits each. */
	u64 front = (number & 0xffffffffffffULL) << 16 | stamp >> 32;
	u32 back = (u32)stamp;
	u32 varying = words(source) + words(destination) + source_port + destination_port;
	if (config.source_stride >= 64)
		varying += words(source_high);
	if (config.destination_stride >= 64)
		varying += words(destination_high);
	u32 sum = size->transport_sum + varying + words(front) + (back >> 16) + (back & 0xffff);

	if (to_all) {
		s->broadcast_in = config.broadcast_every;
		s->to_all++;
		*(u32 *)data = 0xffffffff;
		*(u16 *)(data + 4) = 0xffff;
		/* Of the word the lower six bits are the stream's. */
		data[config.payload + 3] |= BROADCAST_STREAM;
		sum += config.broadcast_sum;
	}

	u8 *ip = data + config.ip;
	u8 *transport = data + config.transport;
	u8 *payload = data + config.payload;
	if (config.ipv6) {
		*(u16 *)(ip + 4) = be16(size->ip_length);
		*(u64 *)(ip + 16) = be64(source);
		*(u64 *)(ip + 32) = be64(destination);
		if (config.source_stride >= 64)
			*(u64 *)(ip + 8) = be64(source_high);
		if (config.destination_stride >= 64)
			*(u64 *)(ip + 24) = be64(destination_high);
	} else {
		*(u16 *)(ip + 2) = be16(size->ip_length);
		*(u16 *)(ip + 10) = be16(~fold(size->ip_sum + words(source) + words(destination)));
		*(u32 *)(ip + 12) = be32((u32)source);
		*(u32 *)(ip + 16) = be32((u32)destination);
	}
	*(u32 *)transport = be32((u32)source_port << 16 | destination_port);
	u16 check = ~fold(sum);
	if (config.tcp) {
		*(u16 *)(transport + 16) = be16(check);
	} else {
		*(u16 *)(transport + 4) = be16(size->transport_length);
		*(u16 *)(transport + 6) = be16(check ? check : 0xffff);
	}
	*(u64 *)(payload + 4) = be64(front);
	*(u32 *)(payload + 12) = be32(back);

	s->credit--;
	s->next += config.interval;
	if (++s->sequence >= config.limit) {
		s->done = 1;
		now = bpf_ktime_get_ns();
	}
	if (now) {
		if (!s->first_ns)
			s->first_ns = now;
		s->last_ns = now;
	}
	if (!config.random && !to_all)
		turn(s);
	if (config.several_sizes && ++s->size >= config.sizes)
		s->size = 0;
	return XDP_TX;
}
