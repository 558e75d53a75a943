// One page for all addresses, which says where it is and what it has fetched.
document.getElementById('path').textContent = location.pathname;
fetch('/data.json').then((answer) => answer.json()).then((data) => {
  document.getElementById('name').textContent = data.name;
  document.getElementById('letters').textContent = `${data.letters} letters`;
});
