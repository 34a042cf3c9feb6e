#!/usr/bin/env python3
"""A mesh over real sshds of hosts without narrows, which is killed at random moments: nothing of it may be left anywhere after ten seconds.

    .ci/mesh_kills.py target/release/narrows --hosts 12 --kills 20 --seed 1

Each host is a network namespace with an sshd of its own. First one mesh runs to its end, and its grid is shown; then each of the others is ended by
SIGKILL of the client, of one of its ssh, or of a process of a member. It needs root and sshd, and removes what it made. Exit code: 0 nothing is
left (or the line NOT CHECKED), 1 something is.
"""
import argparse, os, random, shutil, signal, subprocess, sys, tempfile, time
from pathlib import Path

from trial_network import say, sh

PREFIX = 'mk'

def up(hosts, folder):
    sh(f'ip netns add {PREFIX}s; ip -n {PREFIX}s link add br0 type bridge; ip -n {PREFIX}s link set br0 up; mkdir -p /run/sshd; '
       f'ssh-keygen -q -t ed25519 -N "" -f {folder}/key; ssh-keygen -q -t ed25519 -N "" -f {folder}/host; cp {folder}/key.pub {folder}/authorized; '
       f'chmod 600 {folder}/*')
    names = [f'{PREFIX}h{nth}' for nth in range(hosts)]
    for nth, name in enumerate([f'{PREFIX}c', *names]):
        sh(f'ip netns add {name}; ip link add e0 netns {name} type veth peer name p{nth} netns {PREFIX}s; '
           f'ip -n {PREFIX}s link set p{nth} master br0 up; ip -n {name} addr add 10.88.0.{nth + 1}/24 dev e0; ip -n {name} link set e0 up; '
           f'ip -n {name} link set lo up; ip netns exec {name} tc qdisc add dev e0 root tbf rate 50mbit burst 32k latency 20ms')
        if name != f'{PREFIX}c':
            options = ['-D', '-e', '-h', f'{folder}/host', '-o', f'AuthorizedKeysFile={folder}/authorized', '-o', 'StrictModes=no', '-o', 'UsePAM=no',
                       '-o', 'PasswordAuthentication=no', '-o', 'PermitRootLogin=prohibit-password', '-o', 'MaxStartups=100']
            subprocess.Popen(['ip', 'netns', 'exec', name, shutil.which('sshd') or '/usr/sbin/sshd', *options], stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL)
    ssh = folder / 'bin' / 'ssh'
    ssh.parent.mkdir()
    ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -i {folder}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null '
                   '-o LogLevel=ERROR "$@"\n')
    ssh.chmod(0o755)
    return names

def down():
    for name in sh('ip netns list').split():
        if name.startswith(PREFIX):
            sh(f'ip netns pids {name} | xargs -r kill -9; ip netns del {name}', check=False)

def state(names):
    """What a mesh may leave: processes, sockets, settings, files."""
    of = {}
    for name in names:
        processes = [Path(f'/proc/{pid}/comm').read_text().strip() for pid in sh(f'ip netns pids {name}').split() if Path(f'/proc/{pid}').exists()]
        settings = sh("ss -Hlntu; tc qdisc show dev e0; sysctl -a -r '^net\\.ipv4\\.tcp_(rmem|wmem|congestion_control)' 2>/dev/null", name)
        of[name] = (sorted(it for it in processes if not it.startswith('sshd')), settings)
    files = sorted(str(it) for place in ('/tmp', '/var/tmp', '/dev/shm', '/root') for it in Path(place).glob('*narrows*') if 'mesh-kills' not in it.name)
    return of, files

def client(narrows, hosts, folder, seconds):
    words = [narrows, 'mesh', *(f'ssh://root@10.88.0.{nth + 2}' for nth in range(hosts)), '-t', seconds, '--no-diagnose', '--no-save']
    environment = {**os.environ, 'PATH': f'{folder}/bin:/usr/bin:/bin:/usr/sbin:/sbin', 'NARROWS_STATE': str(folder / 'state')}
    return subprocess.Popen(['ip', 'netns', 'exec', f'{PREFIX}c', *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL, text=True)

def victim(kind, running, names, rng):
    """A process to be killed, and what it is."""
    if kind == 'ssh':
        found = [pid for pid in sh(f'ip netns pids {PREFIX}c').split() if Path(f'/proc/{pid}/comm').read_text().strip() == 'ssh']
    elif kind == 'member':
        found = [pid for name in names for pid in sh(f'ip netns pids {name}').split()
                 if not Path(f'/proc/{pid}/comm').read_text().startswith('sshd')]
    else:
        found = [str(running.pid)]
    return int(rng.choice(found)) if found else running.pid

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('narrows')
    parser.add_argument('--hosts', type=int, default=12)
    parser.add_argument('--kills', type=int, default=20)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    if os.geteuid() or not (shutil.which('sshd') or Path('/usr/sbin/sshd').exists()):
        print('NOT CHECKED: meshes over sshd, since it needs root and openssh-server')
        return 0
    rng, wrong, narrows = random.Random(options.seed), 0, os.path.realpath(options.narrows)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    down()
    with tempfile.TemporaryDirectory(prefix='mesh-kills-') as folder:
        folder = Path(folder)
        try:
            names = up(options.hosts, folder)
            time.sleep(1)
            before = state(names)
            began = time.monotonic()
            whole = client(narrows, options.hosts, folder, '1s')
            out, err = whole.communicate(timeout=300)
            print(out, err)
            lasts = time.monotonic() - began
            say(f'a whole mesh: exit code {whole.returncode}, {lasts:.0f} s')
            wrong += whole.returncode not in (0, 3)
            time.sleep(2)
            for nth in range(options.kills):
                kind, at = ('client', 'ssh', 'member')[nth % 3], rng.uniform(0.2, lasts)
                running = client(narrows, options.hosts, folder, '1s')
                time.sleep(at)
                try:
                    os.kill(victim(kind, running, names, rng), signal.SIGKILL)
                except (ProcessLookupError, FileNotFoundError):
                    os.kill(running.pid, signal.SIGKILL)
                if kind != 'client':
                    # The mesh goes on without that member; then it is ended, too.
                    time.sleep(1)
                    running.kill()
                running.communicate()
                time.sleep(10)
                left = state(names)
                same = left == before
                wrong += not same
                more = '' if same else [(name, left[0][name]) for name in names if left[0][name] != before[0][name]] + [left[1]]
                say('nothing left' if same else 'LEFT', f'{kind} killed after {at:.1f} s', more)
        finally:
            down()
    print(f'{wrong} wrong')
    return min(wrong, 1)

if __name__ == '__main__':
    sys.exit(main())
