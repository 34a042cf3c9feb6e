// Looks at the pages of a directory, and at those of a server, in Chromium; exits with 1 if one of them is not in order.
// Usage: pages.cjs DIRECTORY SERVER TOKEN-FILE [large]
// `large`: the page of a fleet instead: how soon its grid is there, how much that loads, how smoothly it scrolls.
const fs = require('fs');
const path = require('path');
const puppeteer = require('puppeteer-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const [directory, server, token, size] = process.argv.slice(2);
const views = ['light', 'dark'].flatMap(scheme => [390, 1280, 1920].map(width => ({ scheme, width, media: 'screen' })));
// The width of A4 between its margins.
views.push({ scheme: 'light', width: 688, media: 'print' });

// What runs over the page: elements whose end is right of it, and that no ancestor scrolls; words that their box cuts.
function faults() {
    const wide = document.documentElement.clientWidth;
    const paper = matchMedia('print').matches;
    const scrolls = it => it && !paper && (getComputedStyle(it).overflowX === 'auto' || scrolls(it.parentElement));
    const name = it => it.tagName.toLowerCase() + (it.className && it.className.baseVal === undefined ? '.' + it.className : '') +
        ' "' + (it.textContent || '').trim().slice(0, 40) + '"';
    const found = [];
    if (document.documentElement.scrollWidth > wide) found.push('the page is ' + document.documentElement.scrollWidth + ' px wide');
    for (const it of document.body.querySelectorAll('*')) {
        const box = it.getBoundingClientRect();
        if (box.width > 0 && box.right > wide + 1 && !scrolls(it) && !it.closest('svg svg')) found.push('runs over: ' + name(it));
        // What is for screen readers alone has no room on purpose.
        if (getComputedStyle(it).overflowX === 'hidden' && !it.classList.contains('sr') && it.scrollWidth > it.clientWidth + 1) found.push('is cut: ' + name(it));
    }
    for (const picture of document.querySelectorAll('svg')) {
        const sheet = picture.getBoundingClientRect();
        for (const it of picture.querySelectorAll('text')) {
            const box = it.getBoundingClientRect();
            if (box.right > sheet.right + 1 || box.left < sheet.left - 1) found.push('leaves its picture: ' + name(it));
        }
    }
    return found.slice(0, 8);
}

// A page of a reader with the server's token.
async function entered(browser) {
    const page = await browser.newPage();
    await page.goto(server + '/web/login');
    await page.type('input[name=token]', fs.readFileSync(token, 'utf8').trim());
    await Promise.all([page.waitForNavigation(), page.click('form.login button')]);
    return page;
}

// A diagnosis that is started on the page: its lines come one by one; it is stopped; another one goes on to its end and has a report.
async function live(browser) {
    const page = await entered(browser);
    await page.goto(server + '/web/test');
    const click = async words => Promise.all([page.waitForNavigation(), page.locator('main ::-p-text(' + words + ')').click()]);
    const lines = () => page.$eval('.log', it => it.textContent.split('\n').length);
    const has = words => page.waitForFunction(words => document.querySelector('main').innerText.includes(words), { timeout: 60000 }, words);
    // The others are of an emulated network that is down.
    const diagnose = async () => {
        await page.select('select[name=to]', await page.$eval('select[name=to] option:last-child', it => it.value));
        await click('Diagnose');
    };
    await diagnose();
    const first = await lines();
    await page.waitForFunction(first => document.querySelector('.log').textContent.split('\n').length > first + 2, { timeout: 20000 }, first);
    await page.screenshot({ path: path.join(directory, 'web-test-live.png') });
    await click('Stop it');
    await has('Ended: stopped');
    await diagnose();
    await has('Its report');
    await click('Its report');
    if (!page.url().includes('/web/run?id=')) throw new Error('no report at ' + page.url());
    await page.close();
}

// The pages of the server, found by their links: the first page of each kind.
async function served(browser) {
    const page = await entered(browser);
    const found = new Map([['web-front', server + '/web/'], ['web-search', server + '/web/search?q=nosuch']]);
    for (const at of ['/web/', '/web/runs', '/web/table'].map(it => server + it)) {
        await page.goto(at);
        const links = await page.$$eval('a[href]', all => all.map(it => it.href));
        for (const link of [at, ...links]) {
            const kind = new URL(link).pathname.match(/^\/web\/([a-z]+)$/);
            if (link.startsWith(server) && kind && !found.has('web-' + kind[1])) found.set('web-' + kind[1], link);
        }
    }
    await page.close();
    return [...found].map(([name, url]) => ({ name, url }));
}

// What Tab does not reach.
async function unreached(page) {
    const count = await page.evaluate(() => {
        const all = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')];
        const shown = all.filter(it => it.checkVisibility({ visibilityProperty: true }) && !it.disabled && it.type !== 'hidden');
        shown.forEach(it => { it.dataset.unreached = '1'; });
        document.activeElement.blur();
        return shown.length;
    });
    for (let nth = 0; nth < Math.min(count, 300) + 5; nth++) {
        await page.keyboard.press('Tab');
        await page.evaluate(() => { delete document.activeElement.dataset.unreached; });
    }
    if (count > 300) return [];
    return page.$$eval('[data-unreached]', all => all.slice(0, 3).map(it => 'Tab does not reach: ' + it.outerHTML.slice(0, 80)));
}

// From the worst to the words of its verdict, by links alone.
async function clicks(browser) {
    const page = await entered(browser);
    let count = 0;
    while (!page.url().includes('/web/run?')) {
        const from = count ? 'main' : 'ol.troubles';
        const link = await page.$(from + ' a[href*="/web/run?"]') || await page.$(from + ' a[href*="/web/path?"]');
        if (!link || count === 3) throw new Error(count + ' clicks from the worst, and no verdict at ' + page.url());
        await Promise.all([page.waitForNavigation(), link.click()]);
        count += 1;
    }
    const words = await page.$eval('main', it => it.innerText);
    if (!/LIMITED|UNDECIDED|GOOD/i.test(words)) throw new Error('no verdict at ' + page.url());
    await page.close();
    console.log('pages: ' + count + ' clicks from the worst to its verdict (goal: 3)');
}

// Times are shown beside their goals: the machine may be busy. What is loaded is not a matter of time.
async function large(browser) {
    const page = await entered(browser);
    await page.setViewport({ width: 1280, height: 900 });
    await page.setCacheEnabled(false);
    const network = await page.createCDPSession();
    await network.send('Network.enable');
    let bytes = 0;
    network.on('Network.loadingFinished', it => { bytes += it.encodedDataLength; });
    // The grid is drawn in the frame after its place was laid out.
    await page.evaluateOnNewDocument(() => {
        const look = () => {
            if (document.querySelector('.space')?.style.width) requestAnimationFrame(() => { window.drawn ??= performance.now(); });
            else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    });
    const views = [];
    // Of the metric that most paths have; the first one is that of loads.
    await page.goto(server + '/web/');
    const address = await page.$eval('a[href*="metric=rtt"]', it => it.href);
    for (let nth = 0; nth < 5; nth++) {
        bytes = 0;
        await page.goto(address);
        await page.waitForFunction(() => window.drawn, { timeout: 60000 });
        views.push(await page.evaluate(() => window.drawn));
    }
    const middle = all => all.sort((a, b) => a - b)[all.length >> 1];
    const loaded = bytes;
    const unfold = await page.$('::-p-text(Unfold all)');
    if (unfold) await unfold.click();
    // Once across all of it, as fast as frames come; what is not there yet is fetched meanwhile.
    const scrolled = await page.evaluate(() => new Promise(done => {
        const box = document.querySelector('.scroll');
        const [high, wide] = [box.scrollHeight - box.clientHeight, box.scrollWidth - box.clientWidth];
        const began = performance.now();
        let frames = 0, last = began, longest = 0;
        const step = now => {
            const part = Math.min(1, (now - began) / 10000);
            longest = Math.max(longest, now - last);
            last = now;
            [box.scrollTop, box.scrollLeft] = [high * part, wide * part];
            frames += 1;
            if (part < 1) requestAnimationFrame(step);
            else done({ rate: frames / ((now - began) / 1000), longest, wide: box.scrollWidth, high: box.scrollHeight });
        };
        requestAnimationFrame(step);
    }));
    await new Promise(done => setTimeout(done, 1500));
    const cells = await page.$eval('.cell', it => it.textContent);
    const count = await page.evaluate(async () => (await (await fetch(document.querySelector('[data-grid]').dataset.grid)).json()).hosts.length);
    await page.screenshot({ path: path.join(directory, 'large-' + count + '.png') });
    await page.close();
    console.log('pages: ' + count + ' x ' + count + ': first view after ' + (middle(views) / 1000).toFixed(2) + ' s (goal: 1.5), ' + Math.ceil(loaded / 1024) +
        ' KiB loaded (goal: 200), ' + scrolled.rate.toFixed(0) + ' frames a second while it scrolls (goal: 30), the longest frame ' +
        scrolled.longest.toFixed(0) + ' ms, ' + scrolled.wide + ' x ' + scrolled.high + ' px' + (cells ? '; ' + cells : ''));
    return loaded <= 200 * 1024;
}

(async () => {
    const browser = await puppeteer.launch({
        executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'], acceptInsecureCerts: true,
    });
    if (size === 'large') {
        const good = await large(browser);
        await browser.close();
        process.exit(good ? 0 : 1);
    }
    const files = fs.readdirSync(directory).filter(it => it.endsWith('.html')).sort();
    const all = files.map(file => ({ name: file.replace('.html', ''), url: 'file://' + path.join(directory, file) }));
    let passed = 0, failed = 0;
    if (server) {
        await live(browser);
        await clicks(browser);
        passed += 2;
        all.push(...await served(browser));
    }
    for (const { name, url } of all) {
        for (const { scheme, width, media } of views) {
            const page = await browser.newPage();
            await page.setBypassCSP(true);
            await page.setViewport({ width, height: 900 });
            await page.emulateMediaType(media);
            await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
            await page.goto(url);
            const found = await page.evaluate(faults);
            await page.evaluate(axe);
            const result = await page.evaluate(() => axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'best-practice'] }));
            for (const it of result.violations) {
                found.push(it.id + ' (' + it.nodes.length + '): ' + it.nodes[0].target.join(' ') + ': ' + (it.nodes[0].any[0] || it).message);
            }
            if (url.startsWith('http') && width === 1280 && scheme === 'light') found.push(...await unreached(page));
            const view = name + '-' + (media === 'print' ? 'print' : scheme) + '-' + width;
            await page.screenshot({ path: path.join(directory, view + '.png'), fullPage: true });
            await page.close();
            if (found.length) failed += 1; else passed += 1;
            for (const it of found) console.log('FAILED ' + view + ': ' + it);
        }
    }
    await browser.close();
    console.log('pages: ' + passed + ' passed, ' + failed + ' failed');
    process.exit(failed || !passed ? 1 : 0);
})();
