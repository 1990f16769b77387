// Do extension and server fit together?

/**
 * What to tell the user when the server is of another minor version, undefined when it fits.
 * The server comes with the compiler the user installed, so the two are updated apart.
 */
export function versionSkew(extension: string, server: string | undefined): string | undefined {
  const ours = minor(extension);
  const theirs = minor(server ?? "");
  if (ours === undefined || theirs === undefined || ours === theirs) {
    return undefined;
  }
  return `tilelang ${server} is installed, this extension was made for ${ours}.x`;
}

function minor(version: string): string | undefined {
  return /^(\d+\.\d+)\./.exec(version)?.[1];
}
