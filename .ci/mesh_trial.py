#!/usr/bin/env python3
"""Acceptance trial of `narrows mesh`: 40 hosts of 20 Mbit/s in network namespaces behind three routers, with drawn faults.

Each case is drawn by its number alone. Of four cases one has no fault, two have one, one has two: a host that is slow sending, receiving or
both, one that loses packets, a pair, the paths from one router to another, a host whose processes have few of a CPU. With --settings each
case has 3 to 6 hosts with one changed setting that makes them slow, and some twenty settings in which hosts differ without harm.

    .ci/mesh_trial.py target/release/narrows --seed 1 --write cases.jsonl
    .ci/mesh_trial.py --read cases.jsonl

It needs root, and removes what it made, however it ends. Exit code: 0 all is right (or the line NOT CHECKED), 1 something is wrong, 2 usage.
"""
import argparse, json, os, random, shutil, signal, subprocess, sys, tempfile, time
from pathlib import Path

from trial_network import RATE, Network, clean, cpu_group, has_cpu_groups, leftovers, say, sh

# ssh to a namespace: a host's processes are in its control group, where it has one.
SSH = '''#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -G) shift 2; exec awk -v host="$1" '$2 == host { print "hostname " $1; print "port 22" }' {folder}/addresses;;
    --) host=$2; shift 2; break;;
    -o | -p) shift 2;;
    *) shift;;
    esac
done
[ -e {folder}/group-$host ] && echo $$ > "$(cat {folder}/group-$host)"
NARROWS_STATE={folder}/$host exec ip netns exec {prefix}$host sh -c "$*"
'''

# What hosts may differ in without harm on these paths: each of these alone leaves 98 % of a load. Without SACK BBR carries 35 %.
HARMLESS = {
    'net.ipv4.tcp_ecn': (0, 1, 2), 'net.ipv4.tcp_no_metrics_save': (0, 1), 'net.ipv4.tcp_mtu_probing': (0, 1), 'net.ipv4.tcp_adv_win_scale': (1, 2),
    'net.ipv4.tcp_slow_start_after_idle': (0, 1), 'net.ipv4.tcp_notsent_lowat': (1 << 20, 1 << 24, 4294967295),
    'net.ipv4.tcp_autocorking': (0, 1), 'net.ipv4.tcp_limit_output_bytes': (1 << 20, 1 << 22), 'net.ipv4.tcp_window_scaling': (1, 0),
    'net.ipv4.tcp_timestamps': (0, 1), 'gro': ('on', 'off'), 'gso': ('on', 'off'), 'net.ipv4.tcp_congestion_control': ('bbr', 'reno'),
    'net.ipv4.ipfrag_high_thresh': (4 << 20, 8 << 20), 'net.ipv6.ip6frag_high_thresh': (4 << 20, 8 << 20), 'net.ipv4.udp_rmem_min': (4096, 8192), 'net.ipv4.udp_wmem_min': (4096, 8192),
    'net.ipv4.tcp_rmem': ('4096 131072 6291456', '4096 131072 16777216'), 'net.ipv4.tcp_wmem': ('4096 65536 4194304', '4096 65536 16777216'),
    'mtu': (1500, 1400), 'tso': ('on', 'off'), 'txqueuelen': (1000, 500),
}
# Of these the first value fills the bucket before a host. The other one would hide, on some of its paths, that SACK is missing.
FILLING = ('net.ipv4.tcp_window_scaling', 'net.ipv4.tcp_congestion_control')
# What makes a host slow.
CHANGED = {
    'qdisc': lambda net, host, part: net.shape(host, ['sending'], part),
    # BBR carries a third without it. Small buffers slow nothing on paths without a delay; an MTU of 300 bytes takes all CPU time of so many
    # hosts, and a larger one costs less than the tenth by which loads differ.
    'net.ipv4.tcp_sack': lambda net, host, part: put(net, host, 'net.ipv4.tcp_sack', 0),
}

def put(net, host, key, value):
    name = net.names[host]
    link = {'mtu': f'ip link set e0 mtu {value}', 'txqueuelen': f'ip link set e0 txqueuelen {value}',
            **{it: f'ethtool -K e0 {it} {value}' for it in ('tso', 'gro', 'gso')}}
    sh(link.get(key) or f'sysctl -qw {key}="{value}"', name)

def loaded_pairs(net):
    """The pairs that a mesh of so many hosts loads: hosts of the groups by turns, each with the next four (crates/mesh/src/design.rs)."""
    nth = lambda host: sum(net.site(it) == net.site(host) for it in range(host))
    circle = sorted(range(net.hosts), key=lambda host: (nth(host), net.site(host)))
    return [(a, circle[(at + stride) % net.hosts]) for at, a in enumerate(circle) for stride in range(1, 5)]

def draw_fault(net, rng, taken):
    """One fault that shares no host with others: what it is, the names that are right, and what makes it."""
    kind, part = rng.choice(['sending', 'receiving', 'both', 'losing', 'pair', 'trunk', 'quota']), rng.uniform(0.25, 0.6)
    free = [host for host in range(net.hosts) if host not in taken]
    host = rng.choice(free)
    taken.add(host)
    if kind in ('sending', 'receiving', 'both'):
        ways, way = (['sending', 'receiving'], '') if kind == 'both' else ([kind], f' ({kind})')
        return f'{kind} {part:.0%}', [f'host h{host}{way}'], lambda: net.shape(host, ways, part)
    if kind == 'losing':
        return 'losing 5 %', [f'host h{host} (receiving)'], lambda: net.lose(host, True)
    if kind == 'quota':
        percent = rng.randint(2, 6)
        return f'quota {percent} %', [f'starved h{host}'], lambda: cpu_group(f'{net.prefix}-h{host}', percent)
    if kind == 'pair':
        a, b = rng.sample(rng.choice([pair for pair in loaded_pairs(net) if not taken & set(pair)]), 2)
        taken |= {a, b}
        # The bucket of nft holds a second more (nft_limit.c: unit * (rate + burst) / rate), so a load of a second carries twice the rate.
        return f'pair {part:.0%}', [f'only the path h{a} to h{b}'], lambda: net.police(a, b, part / 2)
    here, there = rng.choice([pair for pair in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)) if ('trunk', *pair) not in taken])
    # The way back shares no loads with it, but both together are another element.
    taken |= {('trunk', here, there), ('trunk', there, here)}
    return f'trunk {part:.0%}', [f'the paths from group site{here} to group site{there}'], lambda: net.trunk(here, there, RATE * part)

class Case:
    def __init__(self, options, number, prefix, folder):
        self.number, self.net, self.folder, self.narrows = number, Network(options.hosts, prefix), folder, options.narrows
        self.rng, self.taken = random.Random(f'{options.seed} {number}'), set()
        self.settings, self.seconds = options.settings, options.seconds

    def make(self):
        """Draws what is wrong, and builds it."""
        net, rng, self.wanted = self.net, self.rng, []
        net.up()
        (self.folder / 'addresses').write_text(''.join(f'{net.address(host)} h{host}\n' for host in range(net.hosts)))
        (self.folder / 'hosts').write_text(''.join(f'h{host} site{net.site(host)}\n' for host in range(net.hosts)))
        ssh = self.folder / 'ssh'
        ssh.write_text(SSH.replace('{folder}', str(self.folder)).replace('{prefix}', net.prefix))
        ssh.chmod(0o755)
        if self.settings:
            key, part = rng.choice(list(CHANGED)), rng.uniform(0.25, 0.6)
            hosts = sorted(rng.sample(range(net.hosts), rng.randint(3, 6)))
            for other, values in HARMLESS.items():
                for host in range(net.hosts):
                    if other != key:
                        put(net, host, other, values[0] if key == 'net.ipv4.tcp_sack' and other in FILLING else rng.choice(values))
            for host in hosts:
                CHANGED[key](net, host, part)
            self.faults = [(f'{key} of {" ".join(f"h{host}" for host in hosts)}', [])]
            self.key = key
            return
        made = [draw_fault(net, rng, self.taken) for _ in range((0, 1, 2, 1)[self.number % 4])]
        for _, _, do in made:
            do()
        for group in cpu_group('').glob(f'narrows-{net.prefix}-*'):
            (self.folder / f'group-{group.name.split("-")[-1]}').write_text(str(group / 'cgroup.procs'))
        self.faults = [(kind, names) for kind, names, _ in made]

    def measure(self):
        words = ['mesh', '--hosts', self.folder / 'hosts', '-t', self.seconds, '--no-diagnose', '--format', 'json', '--no-save',
                 '--remote-command', self.narrows]
        path = f'{self.folder}:{os.environ["PATH"]}'
        environment = {**os.environ, 'PATH': path, 'NARROWS_STATE': str(self.folder / 'client')}
        words = ['ip', 'netns', 'exec', f'{self.net.prefix}c', self.narrows, *map(str, words)]
        try:
            done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
            return json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            return {'error': 'it did not end within 600 s'}
        except ValueError:
            return {'error': (done.stderr or done.stdout)[-500:]}

    def run(self):
        """The line of this case."""
        began = time.monotonic()
        self.make()
        built = time.monotonic()
        mesh = self.measure()
        found = {'case': self.number, 'faults': self.faults, 'seconds': round(time.monotonic() - built, 1), 'built': round(built - began, 1)}
        if 'error' in mesh:
            return {**found, 'error': mesh['error'], 'right': False}
        accused, loads = [it['element'] for it in mesh['suspects']], mesh['loads']
        found |= {
            'headline': mesh['headline'], 'accused': accused, 'losing': [it['element'] for it in mesh['losing']],
            'starved': mesh['starved'], 'or': [it['or'] for it in mesh['suspects']],
            'loads': len(loads), 'all': self.net.hosts * (self.net.hosts - 1), 'alone': sum(it['beside_others_bps'] is not None for it in loads),
            'measured': sum('measured' in it['state'] for it in loads),
            'differences': [(it['key'], it['value'], it['chance']) for it in mesh['differences'][:3]],
        }
        return {**found, **(self.judge_settings(found) if self.settings else self.judge(found))}

    def judge_settings(self, found):
        first = found['differences'][0][0] if found['differences'] else ''
        return {'right': self.key.removeprefix('net.ipv4.tcp_') in first}

    @staticmethod
    def judge(found):
        """Whether the first element is one of the faults and nothing else is accused; whether all are found."""
        named = list(dict.fromkeys([*found['accused'], *found['losing'], *(f'starved {it}' for it in found['starved'])]))
        wanted = [names for _, names in found['faults']]
        of = lambda element: [names for names in wanted if element in names]
        others = [element for element in named if not of(element)]
        # A quota slows no load where the kernel moves the data; then there is nothing to name.
        needed = [names for (kind, names) in found['faults'] if not kind.startswith('quota')]
        first = not needed or bool(named) and bool(of(named[0]))
        return {'right': first and not others, 'others': others, 'missing': [names for names in needed if not set(names) & set(named)]}

def report(lines, settings):
    healthy, faulty = [it for it in lines if not it['faults']], [it for it in lines if it['faults']]
    whole = [it for it in faulty if it['right'] and not it.get('missing')]
    print(f'with faults: {sum(it["right"] for it in faulty)} of {len(faulty)} right, all faults found in {len(whole)}')
    if not settings:
        print(f'without: {sum(not it["right"] for it in healthy)} of {len(healthy)} accuse something')
    loads = sorted((it['loads'] + it['alone']) / it['all'] for it in lines if 'loads' in it)
    if loads:
        print(f'loads as a part of all directions of all pairs: median {loads[len(loads) // 2]:.0%}, most {loads[-1]:.0%}; '
              f'seconds: median {sorted(it["seconds"] for it in lines)[len(lines) // 2]:.0f}, most {max(it["seconds"] for it in lines):.0f}')
    for it in lines:
        if not it['right'] or it.get('missing'):
            print(json.dumps({key: value for key, value in it.items() if value not in ([], '')}))
    return all(it['right'] for it in lines)

def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('narrows', nargs='?', help='the program')
    add('--hosts', type=int, default=40, help='17 to 250 (default: 40)')
    add('--seed', type=int, default=1, help='of what is drawn (default: 1)')
    add('--cases', type=int, default=267, help='so many (default: 267, of which 200 have faults)')
    add('--from', type=int, default=0, dest='begin', help='the first of them (default: 0)')
    add('--seconds', default='1s', help='of each load (default: 1s)')
    add('--settings', action='store_true', help='draw changed settings')
    add('--prefix', default='mt', help='of the namespaces (default: mt)')
    add('--write', type=Path, help='a file to which a line for each case is added; cases in it are not repeated')
    add('--read', type=Path, nargs='+', help='only count what is in such files')
    options = parser.parse_args()
    if not options.read and not options.narrows:
        parser.error('it needs NARROWS, or --read')
    options.narrows = options.narrows and os.path.realpath(options.narrows)
    return options

def main():
    options = arguments()
    if options.read:
        return not report([json.loads(line) for file in options.read for line in file.read_text().splitlines()], options.settings)
    missing = [name for name in ('ip', 'tc', 'nft', 'sysctl', 'ethtool', 'awk') if not shutil.which(name)]
    if why := [f'{name} is missing' for name in missing] or ['it needs root'] * (os.geteuid() != 0) or \
            ['there is no control group with the controller cpu'] * (not has_cpu_groups()):
        print(f'NOT CHECKED: meshes in network namespaces, since {", ".join(why)}')
        return 0
    if any(found := leftovers(options.prefix)):
        print('another trial runs, or was killed:', *found[0], *found[1], file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    lines = [json.loads(line) for line in options.write.read_text().splitlines()] if options.write and options.write.exists() else []
    known = {it['case'] for it in lines}
    try:
        for number in range(options.begin, options.cases):
            if number in known:
                continue
            folder = Path(tempfile.mkdtemp(prefix='mesh-trial-'))
            try:
                line = Case(options, number, options.prefix, folder).run()
            finally:
                clean(options.prefix)
                shutil.rmtree(folder, ignore_errors=True)
            lines.append(line)
            say('right' if line['right'] else 'WRONG', json.dumps(line))
            if options.write:
                with open(options.write, 'a') as file:
                    print(json.dumps(line), file=file)
    except KeyboardInterrupt:
        pass
    return not report(lines, options.settings)

if __name__ == '__main__':
    sys.exit(main())
