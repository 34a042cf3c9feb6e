/* What changes of a TCP socket with whatever happens to it, socket after socket: a reader of many asks the kernel for the
 * counters of those alone that changed. Source: net/ipv4/tcp_ipv4.c (bpf_iter_tcp), include/net/tcp_states.h.
 */
#include "kernel.h"

#define BY_NAME __attribute__((preserve_access_index)) /* where it is in the running kernel, its BTF says */
#define WITHOUT_DATA (1 << 10 | 1 << 6 | 1 << 7 | 1 << 12) /* LISTEN, TIME_WAIT, CLOSE, NEW_SYN_RECV */
#define AF_INET6 10

struct address {
	u32 word[4];
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	u8 skc_state;
	int skc_bound_dev_if;
	struct address skc_v6_daddr;
	struct address skc_v6_rcv_saddr;
} BY_NAME;

struct tcp_sock {
	u32 rcv_nxt;
	u32 copied_seq;
	u32 write_seq;
	u32 snd_una;
	u32 segs_in;
	u32 segs_out;
} BY_NAME;

struct bpf_iter_meta {
	void *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

static u64 (*bpf_get_socket_cookie)(void *sk) = (void *)46;
static long (*bpf_seq_write)(void *seq, const void *data, u32 length) = (void *)127;
static struct tcp_sock *(*bpf_skc_to_tcp_sock)(void *sk) = (void *)137;

/* crates/sys/src/tcp_sockets.rs reads it. */
struct record {
	u64 cookie;
	u32 state;
	u32 unread;
	u32 unacknowledged;
	u32 segments_out;
	u32 segments_in;
	u32 device;
	u16 family;
	u16 local_port;
	u16 remote_port; /* in network order */
	u16 unused;
	struct address local; /* IPv4 in the first word */
	struct address remote;
};

SEC("iter/tcp")
int sockets(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	struct tcp_sock *tcp;
	struct record of = {};

	if (!sk)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 0;
	of.state = sk->skc_state;
	if (1 << (of.state & 31) & WITHOUT_DATA)
		return 0;
	of.cookie = bpf_get_socket_cookie(sk);
	of.unread = tcp->rcv_nxt - tcp->copied_seq;
	if ((int)of.unread < 0)
		of.unread = 0;
	of.unacknowledged = tcp->write_seq - tcp->snd_una;
	of.segments_out = tcp->segs_out;
	of.segments_in = tcp->segs_in;
	of.device = sk->skc_bound_dev_if;
	of.family = sk->skc_family;
	of.local_port = sk->skc_num;
	of.remote_port = sk->skc_dport;
	if (of.family == AF_INET6) {
#pragma unroll
		for (int i = 0; i < 4; i++) {
			of.local.word[i] = sk->skc_v6_rcv_saddr.word[i];
			of.remote.word[i] = sk->skc_v6_daddr.word[i];
		}
	} else {
		of.local.word[0] = sk->skc_rcv_saddr;
		of.remote.word[0] = sk->skc_daddr;
	}
	bpf_seq_write(ctx->meta->seq, &of, sizeof(of));
	return 0;
}
