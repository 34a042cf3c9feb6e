#!/usr/bin/env python3
"""Acceptance trial of a fleet: a controller and agents as real processes, each in a network namespace of its own.

Hosts of 20 Mbit/s are behind three routers with trunks between them; the controller is at the first router. A scenario breaks something
and checks what the fleet reports of it (messages of a webhook) and what is in its store.

    faults    slow and losing hosts and trunks: each is blamed once, by its name, and is over once when it is mended
    quiet     two compressed days of restarts, dips and hosts without CPU time: only agents that stay away are reported
    chaos     kills and partitions: each planned test ends once, no host is in two loads at one time, hosts are left as they were
    upgrade   agents and controllers of two versions together: all tests are done, and nothing is reported

It needs root, and removes what it made, however it ends. Exit code: 0 all checks passed (or the line NOT CHECKED), 1 one failed, 2 usage.
"""
import argparse, collections, ctypes, glob, heapq, http.server, itertools, json, math, os, random, re, shutil, signal, socket, socketserver
import sqlite3, struct, subprocess, sys, tempfile, threading, time
from pathlib import Path

from trial_network import RATE, TESTER, Network, clean, cpu_group, has_cpu_groups, leftovers, say, sh

PREFIX, SINK_PORT, AGENT_PORT = 'ft', 8099, 5221
FOLDER, KEPT = 'fleet-trial-run-', 'fleet-trial-kept-'
PROBES_EVERY = 20  # seconds
SETTLES = 90  # seconds until agents are back after an outage: their longest pause, and the longest wait for an answer
LEASE = 90  # seconds until what was given to an agent that is gone is in nobody's hands

def socket_in(namespace, *kind):
    """A socket of another namespace. A thread that ends at once enters it, so that nothing else is there."""
    made = []
    def make():
        with open(f'/run/netns/{namespace}') as file:
            if ctypes.CDLL(None).setns(file.fileno(), 0x40000000) == 0:
                made.append(socket.socket(*kind))
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]

class Program:
    """A program in a namespace. Where it ends by itself it is started again, as its unit does."""
    def __init__(self, trial, name, namespace, words, **environment):
        self.name, self.namespace, self.words, self.log, self.alone = name, namespace, words, trial.work / f'{name}.log', 0
        inherited = {key: value for key, value in os.environ.items() if not key.startswith('NARROWS_')}
        self.environment = {**inherited, **{key: str(value) for key, value in environment.items()}}
        trial.programs[name] = self
        self.start()

    def start(self):
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(['ip', 'netns', 'exec', self.namespace, *self.words], env=self.environment, stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        self.wanted, self.again = True, None

    def look(self):
        if not self.wanted or self.process.poll() is None:
            return
        if self.again is None:
            self.alone, self.again = self.alone + 1, time.monotonic() + 5
            say(f'{self.name} ended by itself with {self.process.returncode}: {self.said()[-1:]}')
        elif time.monotonic() >= self.again:
            self.start()

    def kill(self):
        """As a crash: kill -9. Of PostgreSQL all processes end; narrows must see to its own."""
        self.wanted, pid = False, self.process.pid
        is_whole = self.name == 'postgres' and self.process.poll() is None
        children = Path(f'/proc/{pid}/task/{pid}/children').read_text() if is_whole else ''
        self.process.kill()
        sh(f'kill -9 {children}' if children else ':', check=False)
        self.process.wait()

    def end(self):
        """As its unit is stopped; whether it ends."""
        self.wanted = False
        self.process.send_signal(signal.SIGINT if self.name == 'postgres' else signal.SIGTERM)
        try:
            return self.process.wait(10) is not None
        except subprocess.TimeoutExpired:
            return False

    def said(self):
        return self.log.read_text(errors='replace').splitlines()

class Sink(http.server.BaseHTTPRequestHandler):
    """Receives the messages of the webhook."""
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers['content-length'])))
        self.server.heard.append({**message, 'at': time.monotonic()})
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass

class Sampler(threading.Thread):
    """Samples whether a host exchanges data with two others at the same time. By sock_diag(7), since ss for each host would take a CPU."""
    EVERY, BUSY_BPS = 0.3, 2e6

    def __init__(self, names):
        super().__init__(daemon=True)
        self.links = {name: socket_in(name, socket.AF_NETLINK, socket.SOCK_RAW, 4) for name in names}
        self.samples, self.loads, self.twice, self.is_over = 0, 0, [], threading.Event()

    def run(self):
        before = {name: (time.monotonic(), {}) for name in self.links}
        while not self.is_over.wait(self.EVERY):
            for name, link in self.links.items():
                (then, known), now, connections = before[name], time.monotonic(), self.connections(link)
                before[name] = now, connections
                # Only those that are still open: of two that follow each other the first is not.
                moved = collections.Counter()
                for cookie, (remote, count) in connections.items():
                    moved[remote] += count - known.get(cookie, (remote, 0))[1]
                busy = [remote for remote, count in moved.items() if count * 8 > self.BUSY_BPS * (now - then)]
                self.loads += len(busy) > 0
                if len(busy) > 1:
                    self.twice.append(f'{time.strftime("%H:%M:%S")} {name} with {" and ".join(busy)}')
            self.samples += 1

    @staticmethod
    def connections(link):
        """The established connections at agents' ports: by cookie the other end, and the bytes that both ends have moved."""
        found = {}
        for family, end in ((socket.AF_INET, slice(24, 28)), (socket.AF_INET6, slice(36, 40))):
            # A dump of TCP (6) with TCP_INFO (2) in the state ESTABLISHED (1).
            link.send(struct.pack('=IHHII BBBBI 48x', 72, 20, 0x301, 0, 0, family, 6, 1 << (2 - 1), 0, 1 << 1))
            rest = b''
            while (rest := rest or link.recv(1 << 18)) and struct.unpack_from('=IH', rest)[1] not in (2, 3):  # an error; the end
                length = struct.unpack_from('=I', rest)[0]
                message, rest, place = rest[16:length], rest[(length + 3) & ~3:], 72
                while AGENT_PORT in struct.unpack_from('!HH', message, 4) and place + 4 <= len(message):
                    size, attribute = struct.unpack_from('=HH', message, place)
                    if attribute == 2:
                        moved = sum(struct.unpack_from('=QQ', message, place + 4 + 120))
                        found[message[44:52]] = socket.inet_ntoa(message[end]), moved
                    place += (max(size, 4) + 3) & ~3
        return found

class Trial:
    """A fleet that runs, what it reported, what is still to be done to it, and what was checked."""
    def __init__(self, options, work):
        self.options, self.work, self.network, self.random = options, work, Network(options.hosts, PREFIX), random.Random(options.seed)
        self.names, self.file = [f'h{host:02}' for host in range(options.hosts)], work / 'fleet.toml'
        self.programs, self.heard, self.printed, self.checks, self.binaries = {}, [], 0, [], {}
        self.todo, self.order, self.postgres = [], itertools.count(), None

    def minutes(self, usual):
        return usual if self.options.minutes is None else self.options.minutes

    def binary(self, name):
        return self.binaries.get(name, self.options.narrows)

    def narrows(self, *words):
        """What a command on the controller's host says."""
        environment = {**os.environ, 'NARROWS_STATE': str(self.work / 'controller')}
        words = ['ip', 'netns', 'exec', f'{PREFIX}c', self.binary('controller'), 'fleet', *words]
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL).stdout

    def write_file(self):
        """The file of the fleet. All its loads take half of their period, so that there is time to make some again."""
        # Of 16 hosts at most each is loaded with each, in so few rounds as can be; of more with eight others. A round takes 4 s.
        rounds = 2 * (9 if len(self.names) > 16 else len(self.names) - 1 + len(self.names) % 2)
        self.period = self.options.load_every or math.ceil(2 * 4 * rounds / 10) * 10
        # Over NATS the controller does not see where an agent comes from.
        address = self.network.address if self.options.engine == 'outgrown' else lambda at: ''
        hosts = [f'{name} = {{ group = "site{self.network.site(at)}", address = "{address(at)}" }}' for at, name in enumerate(self.names)]
        test = '[[mesh.test]]\nkind = "{}"\nevery = "{}s"\nlasts = "{}s"\nexpect = "20M"'.format
        self.file.write_text('\n'.join(['name = "trial"', '[hosts]', *hosts, '[[mesh]]', 'name = "all"', 'design = "regular"',
                                        test('load', self.period, 1), test('probe', PROBES_EVERY, 2),
                                        '[[alert]]', f'webhook = "http://{TESTER}:{SINK_PORT}/"', '']))

    def start(self):
        """Starts the network, the engine, the controller and the agents, and waits until they are there."""
        self.network.up()
        self.write_file()
        self.before = self.network.state()
        server = socketserver.ThreadingTCPServer((TESTER, SINK_PORT), Sink, bind_and_activate=False)
        server.socket, server.heard = socket_in(f'{PREFIX}c', socket.AF_INET, socket.SOCK_STREAM), self.heard
        server.server_bind()
        server.server_activate()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        to, words, store, state = TESTER, [], {}, self.work / 'controller'
        if self.options.engine == 'outgrown':
            self.start_postgres()
            to, store = f'nats://{TESTER}:4222', {'NARROWS_STORE': 'postgres://postgres@127.0.0.1:5432/fleet'}
            words = ['--nats', to]
        words = [self.binary('controller'), 'fleet', 'controller', str(self.file), *words]
        Program(self, 'controller', f'{PREFIX}c', words, NARROWS_STATE=state, **store)
        if not self.run(20, (state / 'controller/token').exists):
            raise RuntimeError('the controller does not start')
        if self.options.engine == 'outgrown':
            (self.work / 'narrows.conf').write_text(self.narrows('nats', self.file))
            (self.work / 'nats.conf').write_text(f'listen: {TESTER}:4222\ninclude narrows.conf\n')
            Program(self, 'nats', f'{PREFIX}c', [self.options.nats, '-c', str(self.work / 'nats.conf')])
        for name, namespace in zip(self.names, self.network.names):
            token = self.work / f'{name}.token'
            token.write_text(self.narrows('token', self.file, name))
            words = [self.binary(name), 'fleet', 'agent', to, '--token-file', str(token)]
            Program(self, name, namespace, words, NARROWS_STATE=self.work / name)
        self.wait_for_agents()
        say(f'{self.options.hosts} hosts, engine {self.options.engine}, loads each {self.period} s, seed {self.options.seed}')

    def wait_for_agents(self):
        def are_up():
            return [it['state'] for it in self.status().get('hosts', [])].count('up') == len(self.names)
        if not self.run(60, lambda: self.run(1) or are_up()):
            raise RuntimeError(f'not all agents come; the controller says {self.programs["controller"].said()[-3:]}')

    def start_postgres(self):
        programs = Path(sorted(glob.glob('/usr/lib/postgresql/*/bin/initdb'))[-1]).parent
        self.postgres = folder = self.work / 'postgres'
        folder.mkdir()
        shutil.chown(folder, 'postgres', 'postgres')
        user = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups']
        words = [*user, programs / 'initdb', '-A', 'trust', '-U', 'postgres', '-D', folder / 'data']
        subprocess.run(words, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        words = [programs / 'postgres', '-D', folder / 'data', '-k', folder, '-c', 'listen_addresses=127.0.0.1']
        Program(self, 'postgres', f'{PREFIX}c', [*user, *map(str, words)])
        ready = ['psql', '-h', folder, '-U', 'postgres', '-c', 'CREATE DATABASE fleet']
        if not self.run(60, lambda: subprocess.run(ready, capture_output=True).returncode == 0):
            raise RuntimeError(f'PostgreSQL does not start: {self.programs["postgres"].said()[-3:]}')

    def rows(self, sql):
        """What the store answers."""
        if self.postgres is None:
            store = sqlite3.connect(f'file:{self.work}/controller/runs.db?mode=ro', uri=True, timeout=30)
            try:
                return store.execute(sql).fetchall()
            finally:
                store.close()
        words = ['psql', '-h', self.postgres, '-U', 'postgres', '-d', 'fleet', '-AtF\t', '-c', sql]
        def ask():
            return subprocess.run(words, capture_output=True, text=True, timeout=60)
        # After a crash it recovers first.
        self.run(60, lambda: ask().returncode == 0)
        done = ask()
        done.check_returncode()
        lines = done.stdout.splitlines()
        return [tuple(int(it) if re.fullmatch(r'-?\d+', it) else it for it in line.split('\t')) for line in lines]

    def status(self):
        try:
            return json.loads(self.narrows('status', '--format', 'json'))
        except (ValueError, subprocess.TimeoutExpired):
            return {}

    def counts(self):
        """How tests ended since the controller began, by kind: done, failed, missed."""
        return {it['test'].split()[0]: (it['done'], it['failed'], it['missed']) for it in self.status().get('tests', [])}

    def at(self, seconds, do):
        """Does something later."""
        heapq.heappush(self.todo, (time.monotonic() + seconds, next(self.order), do))

    def run(self, seconds, until=lambda: False):
        """Lets time pass; `True` as soon as it is so."""
        ends, says = time.monotonic() + seconds, time.monotonic() + 60
        while time.monotonic() < ends:
            while self.todo and self.todo[0][0] <= time.monotonic():
                heapq.heappop(self.todo)[2]()
            for program in list(self.programs.values()):
                program.look()
            for it in self.heard[self.printed:]:
                say('MESSAGE', it['state'], it['number'], it['element'], '|', it['says'], '|', it.get('diagnosis') or '')
                self.printed += 1
            if until():
                return True
            if time.monotonic() > says:
                says += 60
                say('tests (done, failed, missed)', self.counts() or 'the controller does not answer')
            time.sleep(0.1)
        return until()

    def check(self, what, is_so, figures=''):
        self.checks.append((what, bool(is_so), str(figures)))
        say('ok    ' if is_so else 'FAILED', what, '|', figures)

    def check_none(self, what, found, figures=''):
        self.check(what, not found, list(found)[:6] if found else figures)

    def messages(self, state, since=0):
        return [it['element'] for it in self.heard[since:] if it['state'] == state]

    def finish(self):
        """Stops all programs as their units do, and checks what they left."""
        programs = list(self.programs.values())
        # Its unit starts a controller again that finds no store.
        may = ('controller', 'postgres') if self.options.scenario == 'chaos' else ()
        alone = [f'{it.name}: {it.alone} times' for it in programs if it.alone and it.name not in may]
        self.check_none('no program ended by itself', alone)
        self.check_none('no program panicked', [it.name for it in programs if any('panicked' in line for line in it.said())])
        self.check_none('all programs end on SIGTERM', [it.name for it in reversed(programs) if not it.end()])
        after = self.network.state()
        changed = [f'{name}: {line}' for name in after for line in sorted(set(self.before[name]) ^ set(after[name]))]
        self.check_none('hosts are as before', changed, f'{sum(map(len, after.values()))} settings of {len(after)} hosts')

    def end(self):
        for program in self.programs.values():
            program.kill()
        clean(PREFIX)
        if self.options.keep:
            kept = self.work.rename(self.work.with_name(self.work.name.replace(FOLDER, KEPT)))
            say(f'logs, store and tokens are in {kept}')
        else:
            shutil.rmtree(self.work, ignore_errors=True)

def drawn(trial):
    """Faults by the seed: what each is, what it should be called, what makes it and what mends it. No two trunks have the same ends."""
    network, rng, found = trial.network, trial.random, []
    kinds = [('sending',), ('receiving',), ('sending', 'receiving'), (), ('sending',)]
    hosts = rng.sample(range(network.hosts), min(5, max(1, network.hosts // 8)))
    for host, ways in zip(hosts, kinds if len(hosts) == 5 else rng.sample(kinds, len(hosts))):
        part, element = rng.uniform(0.25, 0.6), f'host {trial.names[host]}'
        if ways:
            do, undo = lambda it=(host, ways, part): network.shape(*it), lambda it=(host, ways): network.shape(*it)
            found.append((f'{part:.0%} {" ".join(ways)}', element + (f' ({ways[0]})' if len(ways) == 1 else ''), do, undo))
        else:
            do, undo = lambda it=host: network.lose(it, True), lambda it=host: network.lose(it, False)
            found.append(('losing 5 %', f'{element} (receiving)', do, undo))
    pairs = rng.sample(network.pairs, min(2 if network.hosts >= 24 else 1, len(network.pairs)))
    for here, there in (rng.sample(pair, 2) for pair in pairs):
        do, undo = lambda it=(here, there): network.trunk(*it, RATE * 0.4), lambda it=(here, there): network.trunk(*it)
        found.append(('trunk', f'the paths from group site{here} to group site{there}', do, undo))
    return found

def faults(trial):
    """Each fault is blamed with the right element within three rounds of loads, in one message, and over in another when it is mended."""
    trial.start()
    healthy = trial.minutes(2 * trial.period / 60)
    trial.run(healthy * 60)
    counts = trial.counts()
    is_done = not healthy or all(done for done, *_ in counts.values())
    trial.check('healthy: tests are done, nothing is reported', is_done and not trial.heard, f'{trial.messages("began")} tests {counts}')
    broken, mark, began = drawn(trial), len(trial.heard), time.monotonic()
    elements = sorted(element for _, element, *_ in broken)
    for kind, element, do, _ in broken:
        do()
        say('FAULT', kind, '->', element)
    # What is new is diagnosed first, for up to two minutes; then some time for what should not be reported.
    trial.run(trial.options.rounds * trial.period + 120, lambda: set(trial.messages('began', mark)) >= set(elements))
    trial.run(60 if healthy else 5)
    reported = sorted(trial.messages('began', mark))
    missing, others = set(elements) - set(reported), set(reported) - set(elements)
    trial.check('each fault is blamed once, and nothing else', reported == elements, f'{len(reported)}, missing {missing}, others {others}')
    trial.check_none('nothing is over before it is mended', trial.messages('over', mark))
    mended, middle = time.monotonic(), len(trial.heard)
    for *_, undo in broken:
        undo()
    say('all is mended')
    trial.run(4 * trial.period + 60, lambda: set(trial.messages('over', middle)) >= set(reported))
    trial.run(10)
    over, new = sorted(trial.messages('over', middle)), trial.messages('began', middle)
    figures = f'{len(over)}, still open {set(reported) - set(over)}, new {new}'
    trial.check('each is over once, and nothing else begins', over == reported and not new, figures)
    def after(state, element, since):
        return ' '.join(f'{it["at"] - since:.0f}' for it in trial.heard[mark:] if (it['state'], it['element']) == (state, element)) or '-'
    print(f'\n{"fault":<26}{"element":<46}{"reported after s":>18}{"over after s":>14}')
    for kind, element, *_ in broken:
        print(f'{kind:<26}{element:<46}{after("began", element, began):>18}{after("over", element, mended):>14}')
    print()

def starve(trial, name, is_on):
    """Gives an agent 2 % of a CPU, or takes it out again."""
    group = cpu_group(f'{PREFIX}-{name}', 2) if is_on else cpu_group('')
    (group / 'cgroup.procs').write_text(str(trial.programs[name].process.pid))
    if not is_on:
        (group / f'narrows-{PREFIX}-{name}').rmdir()

def dip(trial, host, dips):
    """Halves a host's rate for the time of its next load alone."""
    sql = (f"SELECT due_ms, slot, receiver FROM fleet_tests WHERE sender = '{trial.names[host]}' AND test LIKE 'load%' AND ended = 0 "
           f'AND due_ms > {int(time.time() * 1000) + 1500} ORDER BY due_ms LIMIT 1')
    for due_ms, slot, receiver in trial.rows(sql):
        wait = due_ms / 1000 - time.time()
        trial.at(wait - 0.4, lambda: trial.network.shape(host, ['sending'], 0.5))
        trial.at(wait + 1.6, lambda: trial.network.shape(host))
        dips.append((slot, trial.names[host], receiver))

def felt(trial, dips):
    """How many of these loads were slow."""
    result = 'CAST(result AS TEXT)' if trial.postgres is None else "convert_from(result, 'UTF8')"
    sql = (f"SELECT {result} FROM fleet_tests WHERE test LIKE 'load%' AND ended = 1 "
           "AND slot = {} AND sender = '{}' AND receiver = '{}'")
    rates = [re.search(r'"goodput_bps":([\d.e+]+)', row[0]) for of in dips for row in trial.rows(sql.format(*of))]
    return sum(float(rate[1]) < 0.8e6 * RATE for rate in rates if rate)

def quiet(trial):
    """Of two days of small troubles only agents that stay away are reported, each once, and back once."""
    trial.start()
    rng, hosts, names, programs = trial.random, trial.options.hosts, trial.names, trial.programs
    day, expected, dips, count = trial.minutes(25) * 30, [], [], collections.Counter()
    has_groups = has_cpu_groups()
    if not has_groups:
        say('NOT CHECKED: hosts without CPU time, since there is no control group with the controller cpu')
    # One of so many hosts of a day, for how long, what is done to it, and what undoes it. What stays away for a minute is silent.
    kill, start = lambda host: programs[names[host]].kill(), lambda host: programs[names[host]].start()
    troubles = {
        'killed': (5, lambda: rng.uniform(1, 28), kill, start),
        'away': (13, lambda: 180 if day >= 300 else 110, kill, start),
        'dip': (10, lambda: 0, lambda host: dip(trial, host, dips), lambda host: None),
        'starved': (20, lambda: min(2.5 * trial.period, day / 2), lambda it: starve(trial, names[it], True),
                    lambda it: starve(trial, names[it], False)),
    }
    for nth in range(2):
        free = rng.sample(range(hosts), hosts)
        for kind, (part, lasts, do, undo) in troubles.items():
            for host in [free.pop() for _ in range(max(1, hosts // part)) if kind != 'starved' or has_groups]:
                length = lasts()
                begins = nth * day + rng.uniform(0.05 * day, max(0.06 * day, day - length - 20))
                trial.at(begins, lambda kind=kind, host=host, do=do: (say(kind, names[host]), do(host)))
                trial.at(begins + length, lambda host=host, undo=undo: undo(host))
                expected += [f'agent {names[host]}'] * (kind == 'away')
                count[kind] += 1
    trial.run(2 * day + 30)
    say(f'done: {dict(count)}; {felt(trial, dips)} of {len(dips)} dips made a load slow; tests {trial.counts()}')
    began, over, expected = trial.messages('began'), trial.messages('over'), sorted(expected)
    trial.check('agents that stay away are reported once', sorted(it for it in began if it in expected) == expected, expected)
    trial.check('they are over once', sorted(it for it in over if it in expected) == expected, f'{len(over)} messages')
    trial.check_none('nothing else is reported', [it for it in began + over if it not in expected], f'{sum(count.values())} events')

def chaos(trial):
    """Kills and partitions everything at random; then each planned test has one end, and no host was in two loads at a time."""
    trial.start()
    rng, network, is_down, count = trial.random, trial.network, set(), collections.Counter()
    sampler = Sampler(network.names)
    sampler.start()
    hosts, links = network.hosts, len(network.pairs)
    # What can be taken down, and how often; a partition is a router and two ends. Of a new controller the first minute has no loads, so it
    # is not killed too often.
    targets = [('killed', 'controller', 4)] + [('killed', name, 50 / hosts) for name in trial.names]
    targets += [('killed', 'nats', 5), ('killed', 'postgres', 3)] if trial.postgres else []
    targets += [('partition', (network.site(it), network.address(it), TESTER), 26 / hosts) for it in range(hosts)]
    targets += [('partition', (a, f'10.{100 + a}.0.0/16', f'10.{100 + b}.0.0/16'), 12 / links) for a, b in network.pairs]

    def strike():
        """Takes one of them down that is not, for a while."""
        free = [it for it in targets if it[1] not in is_down]
        kind, what, _ = rng.choices(free, [weight for *_, weight in free])[0]
        is_partition, lasts = kind == 'partition', rng.uniform(0, 30 if kind == 'partition' else 20)
        is_down.add(what)
        count['agent' if what in trial.names else 'partition' if is_partition else what] += 1
        say(kind, ' | '.join(what[1:]) if is_partition else what, f'for {lasts:.0f} s')
        network.partition(*what, True) if is_partition else trial.programs[what].kill()
        def undo():
            is_down.discard(what)
            network.partition(*what, False) if is_partition else trial.programs[what].start()
        trial.at(lasts, undo)

    length = 60 * trial.minutes(trial.options.events / 10)
    for _ in range(trial.options.events):
        trial.at(rng.uniform(0, length), strike)
    trial.run(length + 60, lambda: not trial.todo)
    calm, ends = time.time(), dict(trial.rows('SELECT number, ended FROM fleet_tests WHERE ended > 0'))
    lasts = SETTLES + trial.period + 60 if trial.options.calm is None else trial.options.calm
    say(f'calm for {lasts:.0f} s after {dict(count)}')
    trial.run(lasts)
    audit(trial, calm + min(SETTLES, lasts / 2), ends)
    is_looking = sampler.is_alive() and sampler.loads > 0
    sampler.is_over.set()
    trial.check('no host is in two loads at one time', is_looking and not sampler.twice,
                sampler.twice[:5] or f'{sampler.samples} samples of each host, {sampler.loads} with a load')

def audit(trial, settled, ends):
    """What the store knows of each test; since some time all are made, and `ends` were known before."""
    now = time.time()
    # So long a test may wait for its turn, and then be in the hands of an agent that is gone.
    for kind, before in (('load', now - min(trial.period, 600) - LEASE), ('probe', now - PROBES_EVERY - LEASE)):
        of = f"FROM fleet_tests WHERE test LIKE '{kind}%'"
        has = 'CASE WHEN result IS NULL THEN 0 ELSE 1 END'
        rows = trial.rows(f'SELECT ended, {has}, COUNT(*) {of} AND due_ms < {int(before * 1e3)} GROUP BY 1, 2')
        found = {(ended, has): many for ended, has, many in rows}
        trial.check(f'each {kind} has one end', found and not set(found) - {(1, 1), (2, 0)},
                    f'results {found.get((1, 1), 0)}, missed {found.get((2, 0), 0)}, without an end {found.get((0, 0), 0)}')
        # What is made again has a time instead of a number. The first slot begins before the fleet.
        of += ' AND slot < 100000000000'
        slots = trial.rows(f'SELECT slot, COUNT(*) {of} GROUP BY slot HAVING MAX(due_ms) < {int(before * 1e3)} ORDER BY slot')[1:]
        is_whole = len({many for _, many in slots}) == 1 and [slot for slot, _ in slots] == [slots[0][0] + at for at in range(len(slots))]
        trial.check(f'no {kind} of the schedule is lacking', is_whole, f'{len(slots)} slots of {sorted({many for _, many in slots})}')
        calm = f'{of} AND due_ms BETWEEN {int(settled * 1e3)} AND {int((now - 40) * 1e3)}'
        calm = dict(trial.rows(f'SELECT ended, COUNT(*) {calm} GROUP BY ended'))
        trial.check(f'each {kind} of the calm is made', set(calm) == {1}, f'results {calm.get(1, 0)} of {sum(calm.values())}')
    names = 'fleet, mesh, test, slot, sender, receiver'
    trial.check_none('no test is there twice', trial.rows(f'SELECT {names} FROM fleet_tests GROUP BY {names} HAVING COUNT(*) > 1'))
    now_ends = dict(trial.rows('SELECT number, ended FROM fleet_tests WHERE ended > 0'))
    trial.check_none('no end changes', [number for number, end in ends.items() if now_ends.get(number) != end], f'{len(ends)} ends')

def upgrade(trial):
    """Agents of both versions work with the controller of either; the new one goes on with the state and the store of the old one."""
    def choose(controller, even, odd):
        trial.binaries = {'controller': controller, **{name: odd if at % 2 else even for at, name in enumerate(trial.names)}}
    def works(what):
        trial.run(trial.minutes(6) * 30)
        counts = trial.counts()
        is_done = len(counts) == 2 and all(done and not failed for done, failed, _ in counts.values())
        trial.check(f'{what}: loads and probes are done, none fails', is_done, counts)
        trial.check_none(f'{what}: nothing is reported', trial.messages('began'))
    old, new = trial.options.old, trial.options.narrows
    choose(old, old, new)
    trial.start()
    works('old controller')
    trial.narrows('pause', '10m')
    trial.run(15)  # until nothing runs
    choose(new, new, old)
    for name in trial.binaries:
        trial.programs[name].end()
    for name, binary in trial.binaries.items():
        trial.programs[name].words[0] = binary
        trial.programs[name].start()
    trial.wait_for_agents()
    trial.narrows('pause', '0s')
    say('each program is of the other version now')
    trial.run(SETTLES)  # what the earlier controller gave may still run: no load begins before that is over
    works('new controller')

SCENARIOS = {'faults': faults, 'quiet': quiet, 'chaos': chaos, 'upgrade': upgrade}

def lacking(options):
    """Why it cannot be checked here, if so."""
    needed = {'ip': 'iproute2', 'tc': 'iproute2', 'ss': 'iproute2', 'nft': 'nftables', 'sysctl': 'procps'}
    if options.engine == 'outgrown':
        needed |= {'psql': 'postgresql', 'setpriv': 'util-linux', options.nats: 'nats-server'}
    missing = [f'{name} is missing (Debian: apt-get install {package})' for name, package in needed.items() if not shutil.which(name)]
    if options.engine == 'outgrown' and not options.clean:
        missing += [] if glob.glob('/usr/lib/postgresql/*/bin/initdb') else ['PostgreSQL is missing (Debian: apt-get install postgresql)']
        for program in filter(None, (options.narrows, options.old)):
            said = subprocess.run([program, 'fleet', 'nats', os.devnull], capture_output=True, text=True).stderr
            missing += [f'{program} has no NATS'] if 'has no NATS' in said or 'unrecognized subcommand' in said else []
    return ', '.join(missing or ['it needs root'] * (os.geteuid() != 0))

def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('narrows', nargs='?', help='the program')
    add('scenario', nargs='?', choices=SCENARIOS)
    add('--hosts', type=int, default=40, help='4 to 250 (default: 40)')
    add('--engine', choices=['embedded', 'outgrown'], default='embedded', help='SQLite and HTTPS, or PostgreSQL and NATS')
    add('--nats', default='nats-server', help='the program nats-server')
    add('--seed', type=int, default=1, help='of what is drawn (default: 1)')
    add('--load-every', type=int, help='seconds (default: twice what the loads of all pairs take)')
    add('--minutes', type=float, help='faults: the healthy time (two periods of loads); quiet: both days (25); '
        'chaos: the time of the events (6 s each); upgrade: all (6)')
    add('--rounds', type=int, default=3, help='faults: periods of loads until all is reported (default: 3)')
    add('--events', type=int, default=200, help='chaos: kills and partitions (default: 200)')
    add('--calm', type=int, help='chaos: seconds after them (default: a period of loads and 150 s)')
    add('--old', help='upgrade: the program of the earlier version')
    add('--keep', action='store_true', help='keep logs, store and tokens')
    add('--clean', action='store_true', help='remove what a trial that was killed left, and do nothing else')
    options = parser.parse_args()
    wrong = [
        (not options.clean and not options.scenario, 'it needs NARROWS and SCENARIO, or --clean'),
        (not 4 <= options.hosts <= 250, '--hosts is 4 to 250'),
        (options.scenario == 'upgrade' and not options.old, 'upgrade needs --old'),
        *((it and not os.access(it, os.X_OK), f'{it} is no program') for it in (options.narrows, options.old)),
    ]
    for is_so, why in wrong:
        if is_so:
            parser.error(why)
    options.narrows, options.old = (it and os.path.realpath(it) for it in (options.narrows, options.old))
    return options

def main():
    options = arguments()
    if why := lacking(options):
        print(f'NOT CHECKED: fleets in network namespaces, since {why}')
        return 0
    if options.clean:
        clean(PREFIX)
        for folder in Path(tempfile.gettempdir()).glob(FOLDER + '*'):
            shutil.rmtree(folder)
        return 0
    if any(found := leftovers(PREFIX)):
        print('another trial runs, or was killed:', *found[0], *found[1], '(--clean removes it)', file=sys.stderr)
        return 2
    work = Path(tempfile.mkdtemp(prefix=FOLDER))
    work.chmod(0o711)  # the user of PostgreSQL has a folder in it
    trial, ends = Trial(options, work), (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in ends:
        signal.signal(number, signal.default_int_handler)
    try:
        SCENARIOS[options.scenario](trial)
        trial.finish()
    except KeyboardInterrupt:
        trial.check('the trial was not interrupted', False)
    finally:
        for number in ends:
            signal.signal(number, signal.SIG_IGN)
        trial.end()
    print(f'\n{options.scenario}, {options.engine}, {options.hosts} hosts, seed {options.seed}')
    for what, is_so, figures in trial.checks:
        print(f'  {"ok" if is_so else "FAILED":<8}{what:<54}{figures}')
    return 0 if all(is_so for _, is_so, _ in trial.checks) else 1

if __name__ == '__main__':
    sys.exit(main())
