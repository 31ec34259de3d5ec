"""Looking for inputs on which the two graphs differ."""
