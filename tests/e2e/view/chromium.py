# SPDX-License-Identifier: MIT
"""chromium.py - a page in headless Chromium, driven over its debugging pipe: no package beyond
Python's own, no network port.

    with Page('kron.html') as page:         or a URL of this machine
        page.value('document.title')        what an expression yields, through JSON
        page.key('ArrowRight')              a key, as a person presses it
        page.screenshot('x.png')
        page.errors, page.requests          what went wrong, what was asked of any network
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time


def find():
    for name in ('chromium', 'chromium-browser', 'google-chrome', 'chrome'):
        if shutil.which(name):
            return name
    return None


class Page:
    def __init__(self, path, width=1280, height=800, fragment='', dark=False, patience=90):
        self.errors, self.requests, self.replies, self.events = [], [], {}, []
        self.number, self.patience = 0, patience
        self.home = tempfile.mkdtemp(prefix='kron-chromium-')
        to_read, self.write_fd = os.pipe()
        self.read_fd, to_write = os.pipe()

        def pipes():  # the browser reads commands from 3 and answers on 4
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        command = [find(), '--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe',
                   '--disable-dev-shm-usage', '--no-first-run', '--disable-extensions',
                   '--disable-background-networking', '--disable-component-update', '--hide-scrollbars',
                   '--force-device-scale-factor=1', f'--window-size={width},{height}',
                   f'--user-data-dir={self.home}', 'about:blank']
        self.browser = subprocess.Popen(command, preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest = b''
        self.session = None
        target = next(t for t in self.call('Target.getTargets')['targetInfos'] if t['type'] == 'page')
        self.session = self.call('Target.attachToTarget', targetId=target['targetId'], flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
        if dark:
            self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark'}])
        began = time.monotonic()
        self.url = path if path.startswith('http:') else pathlib.Path(path).resolve().as_uri()
        self.call('Page.navigate', url=self.url + fragment)
        self.wait('document.documentElement?.dataset.ready === "1"')
        self.seconds = time.monotonic() - began
        self.settle()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call('Browser.close')
        except (OSError, RuntimeError):
            pass
        try:
            self.browser.wait(10)
        except subprocess.TimeoutExpired:
            self.browser.kill()
            self.browser.wait()
        os.close(self.write_fd)
        os.close(self.read_fd)
        shutil.rmtree(self.home, ignore_errors=True)

    # ---- messages: JSON, each ended by a zero byte ----

    def take(self, message):
        if 'id' in message:
            self.replies[message['id']] = message
            return
        method, p = message['method'], message.get('params', {})
        if method == 'Runtime.exceptionThrown':
            d = p['exceptionDetails']
            self.errors.append(d.get('exception', {}).get('description') or d['text'])
        elif method == 'Runtime.consoleAPICalled' and p['type'] in ('error', 'warning', 'assert'):
            self.errors.append(str([a.get('value') or a.get('description') for a in p['args']]))
        elif method == 'Log.entryAdded' and p['entry']['level'] in ('error', 'warning'):
            self.errors.append(p['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            self.requests.append(p['request']['url'])

    def pump(self, seconds):
        if not select.select([self.read_fd], [], [], seconds)[0]:
            return
        got = os.read(self.read_fd, 1 << 20)
        if not got:
            raise RuntimeError('the browser has gone')
        *whole, self.rest = (self.rest + got).split(b'\0')
        for m in whole:
            self.take(json.loads(m))

    def call(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        data = json.dumps(message).encode() + b'\0'
        while data:
            data = data[os.write(self.write_fd, data):]
        end = time.monotonic() + self.patience
        while self.number not in self.replies:
            if time.monotonic() > end:
                raise RuntimeError(f'{method}: no answer')
            self.pump(0.5)
        reply = self.replies.pop(self.number)
        if 'error' in reply:
            raise RuntimeError(f'{method}: {reply["error"]}')
        return reply['result']

    # ---- the page ----

    def value(self, expression):
        r = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in r:
            raise RuntimeError(f'{expression}: {r["exceptionDetails"]}')
        return r['result'].get('value')

    def wait(self, expression):
        end = time.monotonic() + self.patience
        while not self.value(expression):
            if time.monotonic() > end:
                raise RuntimeError(f'{expression} never became true; errors: {self.errors}')
            time.sleep(0.05)

    def settle(self):
        """until what was asked for has been drawn"""
        self.value('new Promise(f => requestAnimationFrame(() => requestAnimationFrame(() => f(1))))')

    def key(self, key, text=None):
        text = key if text is None and len(key) == 1 else text
        extra = {'text': text} if text else {}
        codes = {'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowDown': 40, 'Escape': 27, 'Enter': 13,
                 'Home': 36, 'End': 35, 'PageDown': 34, 'PageUp': 33}
        if key in codes:
            extra['windowsVirtualKeyCode'] = codes[key]
        self.call('Input.dispatchKeyEvent', type='keyDown', key=key, **extra)
        self.call('Input.dispatchKeyEvent', type='keyUp', key=key)
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def click(self, x, y, count=1):
        for kind in ('mousePressed', 'mouseReleased'):
            self.mouse(kind, x, y, button='left', clickCount=count)
        self.settle()

    def screenshot(self, path):
        self.settle()
        shot = self.call('Page.captureScreenshot', format='png')
        pathlib.Path(path).write_bytes(base64.b64decode(shot['data']))

    def pdf(self, path):
        out = self.call('Page.printToPDF', preferCSSPageSize=True, printBackground=True)
        pathlib.Path(path).write_bytes(base64.b64decode(out['data']))


if __name__ == '__main__':  # chromium.py PAGE.html PREFIX [KEY...]: a screenshot of each picture
    with Page(sys.argv[1]) as page:
        for k in sys.argv[3:]:
            page.key(k)
        print(f'ready after {page.seconds:.2f} s')
        for name in page.value('kronView.pictures.map(p => p.id)'):
            page.value(f'kronView.show({json.dumps(name)})')
            page.screenshot(f'{sys.argv[2]}-{name}.png')
        print('errors:', page.errors)
        print('asked for:', [u[:80] for u in page.requests if u != page.url])
