"""Prints a text of 20,000 bytes that is the same everywhere and has something
to learn: words of a small vocabulary in an order of their own."""
words = ("and the of god lord shall unto him that his they be is in israel "
         "king man people all which").split()
state, text = 1, []
for _ in range(5000):
    state = (state * 1103515245 + 12345) % 2**31
    text.append(words[(state >> 16) % len(words)])
print(" ".join(text)[:20000], end="")
