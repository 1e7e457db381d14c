// MathJax reads this before it starts. Nothing is loaded later: no menu, no speech.
window.MathJax = {
  tex: {
    inlineMath: [["$", "$"]],
    displayMath: [["$$", "$$"]],
    // As in Jupyter, \_ inside \text; and an unknown command is an error that shows.
    packages: { "[+]": ["textmacros"], "[-]": ["noundefined"] },
  },
  svg: { fontCache: "local", displayAlign: "left", displayIndent: "1.5em" },
  options: { enableMenu: false },
};
