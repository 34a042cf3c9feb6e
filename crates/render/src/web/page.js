// Times in the reader's zone, what changes kept fresh, tests as they go, and the grid. What hosts say becomes text.
// Without it the page works: the grid is there as tables.
'use strict';
(() => {
  const element = (name, words, more) => Object.assign(document.createElement(name), { textContent: words || '' }, more);
  const get = async at => {
    const answer = await fetch(at, { cache: 'no-store', redirect: 'error' });
    if (!answer.ok) throw new Error(answer.status);
    return answer;
  };
  const two = number => String(number).padStart(2, '0');

  // Each time in the reader's zone, with UTC behind it where that differs.
  function times(within) {
    for (const it of within.querySelectorAll('time[datetime], td:first-child')) {
      if (it.tagName === 'TD' && !/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/.test(it.textContent)) continue;
      const at = new Date(it.dateTime || it.textContent);
      if (isNaN(at) || !at.getTimezoneOffset()) continue;
      const utc = two(at.getUTCHours()) + ':' + two(at.getUTCMinutes()) + ' UTC';
      it.textContent = at.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' }) + ' (' + utc + ')';
    }
  }

  // What changes is fetched again, unless the reader fills in a form of it.
  function fresh() {
    const live = document.querySelector('[data-live]');
    if (!live) return;
    setInterval(async () => {
      const typing = live.contains(document.activeElement) && /INPUT|SELECT|BUTTON/.test(document.activeElement.tagName);
      const chosen = it => it.selectedIndex !== Math.max(0, [...it.options].findIndex(option => option.defaultSelected));
      const filled = [...live.querySelectorAll('input')].some(it => it.type === 'text' && it.value !== it.defaultValue)
        || [...live.querySelectorAll('select')].some(chosen);
      if (document.hidden || typing || filled) return;
      try {
        const answer = await get(live.dataset.live);
        live.querySelector('.stale')?.remove();
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        const now = page.querySelector('[data-live]');
        if (!now || now.textContent === live.dataset.text) return;
        live.dataset.text = now.textContent;
        // What has the focus keeps it: the same link, or what stands in its place.
        const stops = () => [...live.querySelectorAll('a[href], summary, [tabindex="0"]')];
        const nth = stops().indexOf(document.activeElement);
        const at = nth >= 0 && document.activeElement.href;
        times(now);
        const open = [...live.querySelectorAll('details')].map(it => it.open);
        live.replaceChildren(...now.childNodes);
        live.querySelectorAll('details').forEach((it, nth) => { it.open = open[nth]; });
        if (nth >= 0) (stops().find(it => at && it.href === at) || stops()[nth])?.focus({ preventScroll: true });
      } catch {
        // What it showed last may be long over.
        if (live.querySelector('.stale')) return;
        const words = 'Not refreshed since ' + new Date().toLocaleTimeString() + ': the session has ended, or nothing answers. Load the page again.';
        live.prepend(element('p', words, { className: 'stale', role: 'alert' }));
      }
    }, 1000 * (live.dataset.each || 10));
  }

  const WORDS = { g: 'good', f: 'failed', m: 'missing', c: 'monitor\u2019s fault (no CPU time)', '.': 'not tested' };
  const LARGE = 60;

  class Grid {
    constructor(box) {
      this.box = box;
      this.words = { ...WORDS, b: box.dataset.bad };
      this.blocks = new Map();
      this.wanted = new Map();
      this.at = [0, 0];
      this.scroll = element('div', '', { className: 'scroll', tabIndex: 0, role: 'application', ariaLabel: 'Grid of paths. Arrow keys move, Enter opens a path or a group.' });
      this.space = element('div');
      this.canvas = element('canvas', '', { ariaHidden: true });
      this.line = element('p', '', { className: 'cell', role: 'status' });
      this.old = element('p', '', { className: 'stale', role: 'status' });
      this.buttons = element('p', '', { className: 'links' });
      const button = (words, act) => this.buttons.append(element('button', words, { type: 'button', onclick: act }), ' ');
      button('Unfold all', () => this.unfold(true));
      button('Fold all', () => this.unfold(false));
      button('Turn', () => { this.turned = !this.turned; this.lay(); });
      this.scroll.append(this.space);
      const frame = element('div', '', { className: 'frame' });
      frame.append(this.canvas, this.scroll);
      box.replaceChildren(this.buttons, frame, this.line, this.old);
      this.scroll.addEventListener('scroll', () => this.later(), { passive: true });
      this.scroll.addEventListener('pointermove', event => this.point(event));
      this.scroll.addEventListener('click', event => this.point(event) && this.open());
      this.scroll.addEventListener('keydown', event => this.key(event));
      this.scroll.addEventListener('focus', () => this.tell());
      new ResizeObserver(() => this.lay()).observe(box);
      matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.paint());
      // Paper is white.
      const paper = is => {
        document.documentElement.classList.toggle('paper', is);
        this.paint();
        this.draw();
      };
      addEventListener('beforeprint', () => paper(true));
      addEventListener('afterprint', () => paper(false));
      this.load().then(() => setInterval(() => document.hidden || this.load(), 15000));
    }

    async load() {
      let data, words = '';
      try {
        data = await (await get(this.box.dataset.grid)).json();
        this.read = new Date().toLocaleTimeString();
      } catch (error) {
        words = (this.data ? 'Not refreshed since ' + this.read : 'The grid cannot be loaded') + ': ' + error.message;
      }
      // The same words are not read aloud again.
      if (words !== this.old.textContent) this.old.textContent = words;
      if (!data) return;
      // Of other hosts or groups what was known is at other places.
      const names = it => JSON.stringify([it?.hosts, it?.groups]);
      if (names(data) !== names(this.data)) [this.blocks, this.wanted] = [new Map(), new Map()];
      data.counts = data.counts.map(it => Object.fromEntries((it.match(/\D\d+/g) || []).map(it => [it[0], +it.slice(1)])));
      this.data = data;
      const { groups, hosts } = data;
      if (!this.opened) {
        const kept = new URLSearchParams(location.search).get('open');
        const small = hosts.length <= LARGE || groups.length === 1;
        const asked = kept !== null && groups.length > 1;
        this.opened = new Set(asked ? kept.split('.').filter(Boolean).map(Number) : small ? groups.keys() : []);
        if (asked) this.links();
      }
      this.stale = new Set(this.blocks.keys());
      this.lay();
    }

    // The rows, which are the columns as well: each group, and its hosts where it is open.
    lay() {
      if (!this.data) return;
      const { groups, hosts } = this.data;
      this.axis = [];
      groups.forEach(([name, from, to], g) => {
        if (groups.length > 1) this.axis.push({ g, name: (this.opened.has(g) ? '\u25be ' : '\u25b8 ') + (name || 'no group'), fold: true });
        if (this.opened.has(g)) for (let at = from; at < to; at++) this.axis.push({ g, at, name: hosts[at] });
      });
      const wide = this.box.clientWidth;
      const many = this.axis.length;
      // Figures have room in the cells of a small grid.
      const room = (wide - 150) / many;
      this.cw = room >= 44 ? Math.min(room, 64) : many > 100 ? 16 : 24;
      this.ch = this.cw >= 44 ? 26 : this.cw;
      const pen = this.canvas.getContext('2d');
      pen.font = '12px sans-serif';
      const longest = Math.max(...this.axis.slice(0, 400).map(it => pen.measureText(it.name).width));
      this.left = Math.min(longest + 12, wide < 500 ? 96 : 200);
      this.top = Math.min(longest + 12, 110);
      const [w, h] = [this.left + many * this.cw + 2, this.top + many * this.ch + 2];
      this.space.className = 'space';
      // By the script, not by an attribute: the policy of the page forbids those.
      Object.assign(this.space.style, { width: w + 'px', height: h + 'px' });
      const high = Math.min(h, Math.max(320, innerHeight * 0.72));
      this.scroll.style.height = high + (w > wide ? 16 : 0) + 'px';
      this.at = this.at.map(it => Math.min(it, many - 1));
      this.paint();
    }

    paint() {
      const style = getComputedStyle(document.body);
      this.ink = {};
      for (const name of ['ink', 'muted', 'line', 'paper', 'g', 'b', 'f', 'm', 'c']) this.ink[name] = style.getPropertyValue('--c-' + name).trim();
      this.later();
    }

    later() {
      this.asked ||= requestAnimationFrame(() => { this.asked = 0; this.draw(); });
    }

    // The letter and the words of a cell; from: the row, to: the column.
    cell(row, column) {
      const [from, to] = this.turned ? [column, row] : [row, column];
      const { groups, counts } = this.data;
      if (from.fold && to.fold) return this.folded(counts[from.g * groups.length + to.g]);
      const block = this.block(from.g, to.g);
      if (!block) return null;
      const [, a, a2] = groups[from.g], [, b, b2] = groups[to.g];
      if (!from.fold && !to.fold) {
        if (from.at === to.at) return { letter: '=', words: 'the host itself' };
        const at = (from.at - a) * (b2 - b) + to.at - b;
        return { letter: block.s[at], short: block.v[at], words: block.w[at], time: block.t[at] };
      }
      const of = {};
      for (let i = from.fold ? a : from.at; i < (from.fold ? a2 : from.at + 1); i++) {
        for (let j = to.fold ? b : to.at; j < (to.fold ? b2 : to.at + 1); j++) {
          const letter = i === j ? '.' : block.s[(i - a) * (b2 - b) + j - b];
          of[letter] = (of[letter] || 0) + 1;
        }
      }
      return this.folded(of);
    }

    // Several paths: a single bad or failed one, else what most are; and how many are so.
    folded(of) {
      const { words } = this;
      const all = [...'bfmcg'].filter(it => of[it]);
      const letter = of.b ? 'b' : of.f ? 'f' : all.reduce((a, b) => of[b] > of[a] ? b : a, all[0] || '.');
      return {
        letter,
        short: (of.b || 0) + (of.f || 0) || '',
        get words() {
          const number = it => it.toLocaleString();
          const each = all.map(it => number(of[it]) + ' ' + words[it]).join(', ');
          return words[letter] + (all.length ? ': ' + each + ' of ' + number(all.reduce((sum, it) => sum + of[it], 0)) : '');
        },
      };
    }

    block(g, h) {
      const key = g + '-' + h;
      const block = this.blocks.get(key);
      if ((!block || this.stale.has(key)) && !this.wanted.has(key)) {
        this.wanted.set(key, 0);
        clearTimeout(this.soon);
        this.soon = setTimeout(() => this.fetch(), 20);
      }
      return block;
    }

    // The blocks that a drawing lacked, those of one drawing at once.
    async fetch() {
      const all = [...this.wanted].filter(([, state]) => !state).map(([key]) => key).slice(0, 24);
      if (!all.length) return;
      all.forEach(key => this.wanted.set(key, 1));
      const { blocks } = this;
      try {
        for (const it of await (await get(this.box.dataset.grid + '&of=' + all.join(','))).json()) {
          const key = it.of.join('-');
          blocks.set(key, it);
          this.stale.delete(key);
        }
      } catch { /* It is drawn again, and then asked for again. */ }
      // What is asked for again at once would be asked for for ever where there is none.
      setTimeout(() => all.forEach(key => this.wanted.delete(key)), 1000);
      if ([...this.wanted.values()].some(state => !state)) this.soon = setTimeout(() => this.fetch(), 20);
      this.later();
      if (document.activeElement === this.scroll) this.tell();
    }

    draw() {
      if (!this.axis) return;
      const { canvas, scroll, cw, ch, left, top, ink, axis } = this;
      const [wide, high] = [scroll.clientWidth, scroll.clientHeight];
      const sharp = devicePixelRatio || 1;
      if (canvas.width !== Math.round(wide * sharp) || canvas.height !== Math.round(high * sharp)) {
        canvas.width = Math.round(wide * sharp);
        canvas.height = Math.round(high * sharp);
        Object.assign(canvas.style, { width: wide + 'px', height: high + 'px' });
      }
      const pen = canvas.getContext('2d');
      pen.setTransform(sharp, 0, 0, sharp, 0, 0);
      pen.fillStyle = ink.paper;
      pen.fillRect(0, 0, wide, high);
      const [dx, dy] = [scroll.scrollLeft, scroll.scrollTop];
      const first = { x: Math.floor(dx / cw), y: Math.floor(dy / ch) };
      const last = { x: Math.min(axis.length, Math.ceil((dx + wide - left) / cw)), y: Math.min(axis.length, Math.ceil((dy + high - top) / ch)) };
      const clip = (...box) => {
        pen.save();
        pen.beginPath();
        pen.rect(...box);
        pen.clip();
      };
      clip(left, top, wide, high);
      for (let y = first.y; y < last.y; y++) {
        for (let x = first.x; x < last.x; x++) this.shape(pen, this.cell(axis[y], axis[x]), left + x * cw - dx, top + y * ch - dy, axis[y].fold || axis[x].fold);
      }
      if (document.activeElement === scroll) {
        const [x, y] = [left + this.at[1] * cw - dx, top + this.at[0] * ch - dy];
        pen.strokeStyle = ink.ink;
        pen.lineWidth = 2.5;
        pen.strokeRect(x + 1, y + 1, cw - 2, ch - 2);
      }
      pen.restore();
      pen.textBaseline = 'middle';
      const label = (it, bold) => {
        pen.font = (it.fold || bold ? '600 ' : '') + '12px sans-serif';
        pen.fillStyle = it.fold || bold ? ink.ink : ink.muted;
      };
      const cut = (words, room) => {
        if (pen.measureText(words).width <= room) return words;
        let n = words.length;
        while (n > 1 && pen.measureText(words.slice(0, n) + '\u2026').width > room) n--;
        return words.slice(0, n) + '\u2026';
      };
      clip(0, top, left, high);
      pen.textAlign = 'left';
      for (let y = first.y; y < last.y; y++) {
        label(axis[y], y === this.at[0]);
        pen.fillText(cut(axis[y].name, left - 8), 2, top + (y + 0.5) * ch - dy);
      }
      pen.restore();
      clip(left, 0, wide, top);
      for (let x = first.x; x < last.x; x++) {
        label(axis[x], x === this.at[1]);
        pen.save();
        pen.translate(left + (x + 0.5) * cw - dx, top - 4);
        pen.rotate(-Math.PI / 2);
        pen.fillText(cut(axis[x].name, top - 8), 0, 0);
        pen.restore();
      }
      pen.restore();
      pen.font = '11px sans-serif';
      pen.fillStyle = ink.muted;
      pen.fillText(this.turned ? 'to \u2193 from \u2192' : 'from \u2193 to \u2192', 2, top - 8);
    }

    // Colour and form say the same.
    shape(pen, cell, x, y, fold) {
      const { cw, ch, ink } = this;
      const letter = cell ? cell.letter : '?';
      const [mx, my, r] = [x + cw / 2, y + ch / 2, Math.min(cw, ch) / 2 - 3];
      pen.lineWidth = 1.5;
      const q = r * 0.7;
      const lines = (...all) => {
        pen.beginPath();
        all.forEach(([[x, y], ...rest]) => { pen.moveTo(x, y); rest.forEach(it => pen.lineTo(...it)); });
      };
      if (letter === 'g' || letter === 'b') {
        pen.fillStyle = ink[letter];
        pen.fillRect(x + 1, y + 1, cw - 2, ch - 2);
        if (letter === 'b' && cw < 44) {
          pen.fillStyle = ink.paper;
          lines([[mx - q, my - r / 2], [mx + q, my - r / 2], [mx, my + q]]);
          pen.fill();
        }
      } else if (letter === 'f') {
        pen.strokeStyle = ink.f;
        pen.lineWidth = 2.5;
        lines([[mx - q, my - q], [mx + q, my + q]], [[mx + q, my - q], [mx - q, my + q]]);
        pen.stroke();
      } else if (letter === 'm') {
        pen.strokeStyle = ink.m;
        pen.setLineDash([3, 2]);
        pen.strokeRect(mx - r * 0.8, my - r * 0.8, r * 1.6, r * 1.6);
        pen.setLineDash([]);
      } else if (letter === 'c') {
        pen.strokeStyle = ink.c;
        pen.beginPath();
        pen.arc(mx, my, r * 0.75, 0, 7);
        pen.stroke();
      } else if (letter === '=') {
        pen.strokeStyle = ink.line;
        lines([[x + 3, y + 3], [x + cw - 3, y + ch - 3]]);
        pen.stroke();
      } else {
        pen.fillStyle = letter === '?' ? ink.line : ink.muted;
        pen.beginPath();
        pen.arc(mx, my, letter === '?' ? 3 : 1.3, 0, 7);
        pen.fill();
      }
      if (fold) {
        pen.strokeStyle = ink.muted;
        pen.lineWidth = 1;
        pen.strokeRect(x + 1.5, y + 1.5, cw - 3, ch - 3);
      }
      if (cell && cell.short && cw >= 44 && 'gbc'.includes(letter)) {
        pen.font = (letter === 'b' ? '600 ' : '') + '12px sans-serif';
        pen.fillStyle = letter === 'b' ? ink.paper : ink.ink;
        pen.textAlign = 'center';
        pen.textBaseline = 'middle';
        pen.fillText((letter === 'b' ? '\u25bc ' : '') + cell.short, mx, my);
        pen.textAlign = 'left';
      }
    }

    // The cell under the pointer; on a name its group.
    point(event) {
      if (!this.axis) return;
      const box = this.scroll.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const [column, row] = [Math.floor((x - this.left + this.scroll.scrollLeft) / this.cw), Math.floor((y - this.top + this.scroll.scrollTop) / this.ch)];
      const name = this.axis[x < this.left ? row : y < this.top ? column : -1];
      this.named = x < this.left || y < this.top ? name : undefined;
      if (x >= this.left && y >= this.top && this.axis[row] && this.axis[column]) {
        if (this.at[0] === row && this.at[1] === column && event.type !== 'click') return true;
        this.at = [row, column];
        this.tell();
        this.later();
        return true;
      }
      return this.named;
    }

    tell() {
      if (!this.axis) return;
      const [row, column] = this.at.map(at => this.axis[at]);
      if (!row || !column) return;
      const [from, to] = this.turned ? [column, row] : [row, column];
      const cell = this.cell(row, column) || { words: 'loading', letter: '?' };
      const plain = it => it.name.replace(/^[\u25b8\u25be] /, '');
      const more = cell.words && !(from.fold || to.fold) ? ', ' + cell.words : '';
      const says = from.fold || to.fold ? cell.words : (this.words[cell.letter] || cell.words) + (this.words[cell.letter] ? more : '');
      const line = element('p');
      line.append(element('strong', plain(from) + ' \u2192 ' + plain(to)), ': ' + says);
      if (cell.time) line.append(', ' + new Date(cell.time * 1000).toLocaleString([], { dateStyle: 'short', timeStyle: 'short' }));
      const link = this.link(from, to);
      if (link) line.append(' ', element('a', 'over time', { href: link }));
      // The same words are not read aloud again.
      if (line.textContent !== this.line.textContent) this.line.replaceChildren(...line.childNodes);
      this.later();
    }

    link(from, to) {
      if (from.fold || to.fold || from.at === to.at) return null;
      return this.box.dataset.path + '?' + new URLSearchParams({ from: from.name, to: to.name });
    }

    open() {
      if (!this.axis) return;
      const named = this.named;
      if (named && !named.fold) location.href = this.box.dataset.host + '?' + new URLSearchParams({ name: named.name });
      else if (named) this.toggle(named.g);
      else {
        const [row, column] = this.at.map(at => this.axis[at]);
        const link = this.turned ? this.link(column, row) : this.link(row, column);
        if (link) location.href = link;
        else [row, column].filter(it => it.fold).forEach((it, nth, all) => { if (!nth || it.g !== all[0].g) this.toggle(it.g); });
      }
    }

    toggle(g) {
      if (!this.opened.delete(g)) this.opened.add(g);
      this.keep();
    }

    unfold(all) {
      // A single group has no row to be folded into.
      this.opened = new Set(all || this.data.groups.length < 2 ? this.data.groups.keys() : []);
      this.keep();
    }

    // What is open is part of the address, so that it can be shared.
    keep() {
      const query = new URLSearchParams(location.search);
      query.set('open', [...this.opened].sort((a, b) => a - b).join('.'));
      history.replaceState(null, '', '?' + query);
      this.links();
      this.lay();
    }

    // Another metric keeps what is open.
    links() {
      for (const it of document.querySelectorAll('.paths .links a[href*="metric="]')) {
        const at = new URL(it.href);
        at.searchParams.set('open', new URLSearchParams(location.search).get('open'));
        it.href = at;
      }
    }

    key(event) {
      if (!this.axis || event.ctrlKey || event.metaKey || event.altKey) return;
      const page = Math.max(1, Math.floor((this.scroll.clientHeight - this.top) / this.ch) - 1);
      const end = this.axis.length - 1;
      const [row, column] = this.at;
      const to = {
        ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
        Home: [row, 0], End: [row, end], PageUp: [row - page, column], PageDown: [row + page, column],
      }[event.key];
      if (to) this.at = to.map(it => Math.min(end, Math.max(0, it)));
      else if (event.key === 'Enter' || event.key === ' ') { this.named = undefined; this.open(); } else return;
      event.preventDefault();
      const { scroll, cw, ch, left, top } = this;
      const [y, x] = [this.at[0] * ch, this.at[1] * cw];
      scroll.scrollTop = Math.min(y, Math.max(scroll.scrollTop, y + ch + top - scroll.clientHeight));
      scroll.scrollLeft = Math.min(x, Math.max(scroll.scrollLeft, x + cw + left - scroll.clientWidth));
      this.tell();
    }
  }

  // What a test says; at its end the page has what it found.
  function follow(box) {
    const source = new EventSource(box.dataset.events);
    source.onmessage = event => {
      box.append(event.data + '\n');
      box.scrollTop = box.scrollHeight;
    };
    source.addEventListener('end', () => location.reload());
    source.onerror = () => source.readyState > 1 && box.append('Load the page again.');
  }

  document.addEventListener('keydown', event => {
    if (event.key !== '/' || event.ctrlKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
    event.preventDefault();
    document.querySelector('.search input')?.focus();
  });
  times(document);
  fresh();
  document.querySelectorAll('[data-events]').forEach(follow);
  document.querySelectorAll('[data-grid]').forEach(box => new Grid(box));
})();
