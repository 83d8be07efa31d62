// What is wrong with a page, as lists of what is. Only tests put this into a copy of it.
const errors = [];
addEventListener('error', e => errors.push(String(e.message || e.target.src)), true);
addEventListener('load', () => {
  const round = x => Math.round(x * 10) / 10;
  const name = e => e.tagName + '.' + (e.getAttribute('class') || '') + ' ' + (e.textContent || '').trim().slice(0, 40);
  const numbers = c => (c.match(/[\d.]+/g) || ['0', '0', '0']).slice(0, 3).map(Number);
  const light = c => {
    const [r, g, b] = numbers(c).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => p - q); return (y + 0.05) / (x + 0.05); };
  const ground = getComputedStyle(document.documentElement).backgroundColor;
  document.querySelectorAll('details').forEach(d => { d.open = true; });
  const outside = [], cut = [], overlaps = [], tiny = [], pale = [], bare = [];
  const pictures = [...document.querySelectorAll('svg[role=img]')];
  for (const svg of pictures) {
    const box = svg.getBoundingClientRect(), around = svg.parentElement.getBoundingClientRect();
    const label = svg.getAttribute('aria-label');
    if (!label || box.width < 50 || box.height < 15) bare.push(label + ' ' + round(box.width) + 'x' + round(box.height));
    if (box.left < around.left - 1 || box.right > around.right + 1 || box.bottom > around.bottom + 1)
      outside.push(label + ' ' + round(box.right) + ' > ' + round(around.right));
    const scale = box.width / svg.viewBox.baseVal.width;
    const labels = [];
    for (const e of svg.querySelectorAll('text,circle,path,rect')) {
      const r = e.getBoundingClientRect();
      if (r.left < box.left - 2 || r.right > box.right + 2 || r.top < box.top - 2 || r.bottom > box.bottom + 2)
        cut.push(label + ': ' + name(e));
      if (e.tagName !== 'text') continue;
      if (parseFloat(getComputedStyle(e).fontSize) * scale < 7.5) tiny.push(label + ': ' + name(e));
      if (!e.classList.contains('i') && contrast(getComputedStyle(e).fill, ground) < 4.5) pale.push(label + ': ' + name(e));
      for (const [other, known] of labels)
        if (r.left < known.right - 1 && known.left < r.right - 1 && r.top < known.bottom - 3 && known.top < r.bottom - 3)
          overlaps.push(label + ': ' + name(e) + ' on ' + name(other));
      labels.push([e, r]);
    }
    for (const e of svg.querySelectorAll('.c'))
      if (contrast(getComputedStyle(e).stroke, ground) < 2.5) pale.push(label + ': a curve ' + getComputedStyle(e).stroke);
  }
  for (const e of document.querySelectorAll('h1,h2,h3,p,li,td,th,a,dt,dd,summary,caption'))
    if (e.getClientRects().length && !e.classList.contains('skip') && contrast(getComputedStyle(e).color, ground) < 4.5) pale.push(name(e));
  for (const f of document.querySelectorAll('figure'))
    if (!f.querySelector('details table tbody tr')) bare.push('a figure without a table');
  for (const s of document.querySelectorAll('.scroll')) {
    if (s.tabIndex !== 0) bare.push('a table that no key reaches');
    if (s.getBoundingClientRect().right > document.documentElement.clientWidth + 1) outside.push('a table');
  }
  const lost = [...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute('href').slice(1)).filter(id => !document.getElementById(id));
  const requests = performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('data:'));
  const root = document.documentElement;
  parent.postMessage(JSON.stringify({
    width: innerWidth, pictures: pictures.length, is_dark: light(ground) < 0.2, beyond: root.scrollWidth - root.clientWidth,
    errors, requests, outside, cut, overlaps, tiny, pale, bare, lost,
  }), '*');
});
