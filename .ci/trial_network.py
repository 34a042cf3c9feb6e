"""A network of namespaces for trials: hosts of 20 Mbit/s behind three routers."""
import re, subprocess, time
from pathlib import Path

RATE, TRUNK = 20, 400  # Mbit/s of a host in each direction, and between two routers
TESTER = '10.89.0.2'
PAIRS = ((0, 1), (1, 2), (0, 2))  # of routers
CPU_V1, CPU_V2 = Path('/sys/fs/cgroup/cpu'), Path('/sys/fs/cgroup')

def say(*words):
    print(time.strftime('%H:%M:%S'), *words, flush=True)

def sh(script, namespace=None, check=True):
    """Runs a shell script, in a namespace if one is named, and returns its output."""
    words = ['ip', 'netns', 'exec', namespace] if namespace else []
    done = subprocess.run([*words, 'sh', '-ec', script], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    if check and done.returncode:
        raise RuntimeError(f'{script}: {done.stderr.strip()}')
    return done.stdout

def leftovers(prefix):
    """Namespaces and control groups of a trial."""
    names = [line.split()[0] for line in sh('ip netns list').splitlines() if line.strip()]
    groups = [group for base in (CPU_V1, CPU_V2) for group in base.glob(f'narrows-{prefix}-*')]
    # The tester's, those of routers, those of hosts.
    return [name for name in names if re.fullmatch(rf'{prefix}(c|r\d|h\d+)', name)], groups

def clean(prefix):
    """Removes the namespaces of a trial with the processes in them, and its control groups."""
    names, groups = leftovers(prefix)
    for name in names:
        sh(f'ip netns pids {name} | xargs -r kill -9', check=False)
    time.sleep(0.5 if names else 0)
    for name in names:
        sh(f'ip netns del {name}', check=False)
    for group in groups:
        group.rmdir()

class Network:
    """Hosts at three routers that are joined by trunks; one more at the first router runs what tests them."""
    def __init__(self, hosts, prefix):
        self.prefix, self.hosts, self.names = prefix, hosts, [f'{prefix}h{host}' for host in range(hosts)]
        self.sites = max(1, min(3, hosts // 4))  # a host alone at a site has nothing to be compared with
        self.pairs = [pair for pair in PAIRS if max(pair) < self.sites]

    def site(self, host):
        return host * self.sites // self.hosts

    def address(self, host):
        return f'10.{100 + self.site(host)}.{host}.2'

    def up(self):
        for router in range(3):
            sh(f'ip netns add {self.prefix}r{router}; ip -n {self.prefix}r{router} link set lo up')
            # Nothing passes between the pairs of addresses in the set.
            sh('sysctl -qw net.ipv4.ip_forward=1; nft "table inet trial { set cut { type ipv4_addr . ipv4_addr; flags interval; }; '
               'chain forward { type filter hook forward priority 0; ip saddr . ip daddr @cut drop; }; }"', f'{self.prefix}r{router}')
        for a, b in PAIRS:
            sh(f'ip link add t{b} netns {self.prefix}r{a} type veth peer name t{a} netns {self.prefix}r{b}')
            for here, there, last in ((a, b, 1), (b, a, 2)):
                sh(f'ip addr add 10.90.{a}{b}.{last}/30 dev t{there}; ip link set t{there} up; '
                   f'ip route add 10.{100 + there}.0.0/16 via 10.90.{a}{b}.{3 - last}', f'{self.prefix}r{here}')
                self.trunk(here, there)
        p = self.prefix
        sh(f'ip netns add {p}c; ip link add e0 netns {p}c type veth peer name c0 netns {p}r0; ip -n {p}r0 addr add 10.89.0.1/30 dev c0; '
           f'ip -n {p}r0 link set c0 up; ip -n {p}r1 route add 10.89.0.0/30 via 10.90.01.1; ip -n {p}r2 route add 10.89.0.0/30 via 10.90.02.1')
        sh(f'ip addr add {TESTER}/30 dev e0; ip link set e0 up; ip link set lo up; ip route add default via 10.89.0.1', f'{self.prefix}c')
        for host, name in enumerate(self.names):
            router, gateway = f'{self.prefix}r{self.site(host)}', self.address(host)[:-1] + '1'
            sh(f'ip netns add {name}; ip link add e0 netns {name} type veth peer name h{host} netns {router}; '
               f'ip -n {router} addr add {gateway}/24 dev h{host}; ip -n {router} link set h{host} up')
            sh(f'ip addr add {self.address(host)}/24 dev e0; ip link set e0 up; ip link set lo up; ip route add default via {gateway}',
               name)
            self.shape(host)

    def shape(self, host, ways=('sending', 'receiving'), part=1.0):
        """Gives a host a part of its rate."""
        bucket = f'root tbf rate {RATE * part:.2f}mbit burst 16k latency 40ms'
        for way, device, name in (('sending', 'e0', f'{self.prefix}h{host}'), ('receiving', f'h{host}', f'{self.prefix}r{self.site(host)}')):
            if way in ways:
                sh(f'tc qdisc replace dev {device} {bucket}', name)

    def trunk(self, here, there, rate=TRUNK):
        sh(f'tc qdisc replace dev t{there} root tbf rate {rate}mbit burst 60k latency 30ms', f'{self.prefix}r{here}')

    def lose(self, host, is_on):
        """A host loses one of twenty packets that it receives."""
        table = '"table inet loss { chain input { type filter hook input priority 0; numgen random mod 20 0 drop; }; }"'
        sh(f'nft {table if is_on else "delete table inet loss"}', f'{self.prefix}h{host}')

    def partition(self, router, a, b, is_on):
        """Lets a router drop what passes between two addresses or networks."""
        sh(f"nft {'add' if is_on else 'delete'} element inet trial cut '{{ {a} . {b}, {b} . {a} }}'", f'{self.prefix}r{router}')

    def police(self, a, b, part):
        """What a host sends to another one is dropped above a part of its rate; 1: it is not."""
        table, rate = f'trial{a}x{b}', int(RATE * part * 125)
        script = (f'table inet {table} {{ chain forward {{ type filter hook forward priority 1; ip saddr {self.address(a)} '
                  f'ip daddr {self.address(b)} limit rate over {rate} kbytes/second burst 20 kbytes drop; }}; }}')
        sh(f'nft "{script}"' if part < 1 else f'nft delete table inet {table}', f'{self.prefix}r{self.site(a)}')

    def state(self):
        """What an agent could have left changed in each host. Counters and numbers that the kernel gives are left out."""
        script = ("tc qdisc show | sed 's/ 8[0-9a-f]*: / /'; nft list ruleset; ip -o link | sed 's/ qdisc .*//'; ip route; ss -Hlntu; "
                  "sysctl -a -r '^net\\.' 2>/dev/null | grep -v conntrack_count")
        processes = lambda name: 'processes ' + ' '.join(sh(f'ip netns pids {name}').split())
        return {name: [*sh(script, name).splitlines(), processes(name)] for name in self.names}

def has_cpu_groups():
    """Whether there are control groups with the controller cpu."""
    is_v2 = (CPU_V2 / 'cgroup.controllers').exists() and 'cpu' in (CPU_V2 / 'cgroup.subtree_control').read_text().split()
    return is_v2 or (CPU_V1 / 'cgroup.procs').exists()

def cpu_group(name, percent=None):
    """The control group of that name, `PREFIX-HOST`, made with so many percent of a CPU; without them the one of all processes."""
    base = CPU_V1 if (CPU_V1 / 'cgroup.procs').exists() else CPU_V2
    if percent is None:
        return base
    group, quota = base / f'narrows-{name}', str(percent * 1000)
    group.mkdir()
    files = {'cpu.cfs_period_us': '100000', 'cpu.cfs_quota_us': quota} if base == CPU_V1 else {'cpu.max': f'{quota} 100000'}
    for file, value in files.items():
        (group / file).write_text(value)
    return group
