"""`rnea_panel`: a page in the browser that shows an arm and moves it."""
